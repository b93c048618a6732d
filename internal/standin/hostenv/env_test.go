//go:build linux

package hostenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
)

func newEnv(t *testing.T) *env {
	t.Helper()
	e, err := New(t.Context(), &bytes.Buffer{}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	return e.(*env)
}

// proves K21: the database can be read between the transactions of a server, and reading makes nothing
func TestStore(t *testing.T) {
	e, file := newEnv(t), filepath.Join(t.TempDir(), "x.db")
	if _, err := e.ReadStore(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing database: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a database: %v", err)
	}
	set := func(change func(map[string]string)) error {
		return e.UpdateStore(file, func(pairs map[string]string) error { change(pairs); return nil })
	}
	if err := set(func(p map[string]string) { p["a"], p["b"] = "1", "2" }); err != nil {
		t.Fatal(err)
	}
	if err := set(func(p map[string]string) { delete(p, "a"); p["c"] = "3" }); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := e.UpdateStore(file, func(p map[string]string) error { p["d"] = "4"; return stop }); !errors.Is(err, stop) {
		t.Errorf("failed change: %v", err)
	}
	got, err := e.ReadStore(file)
	if want := map[string]string{"b": "2", "c": "3"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v %v, want %v", got, err, want)
	}
}

func TestFilesAndLock(t *testing.T) {
	e, dir := newEnv(t), t.TempDir()
	file := filepath.Join(dir, "a/b/c")
	if err := e.WriteFile(file, []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	if names, err := e.ReadDir(filepath.Dir(file)); err != nil || !reflect.DeepEqual(names, []string{"c"}) {
		t.Errorf("got %v %v", names, err)
	}
	if names, err := e.ReadDir(filepath.Join(dir, "none")); err != nil || names != nil {
		t.Errorf("missing directory: %v %v", names, err)
	}
	if err := errors.Join(e.Remove(file), e.Remove(file)); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	lock, err := e.TryLock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.TryLock(filepath.Join(dir, "lock")); !errors.Is(err, standin.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.TryLock(filepath.Join(dir, "lock")); err != nil {
		t.Errorf("lock after it was freed: %v", err)
	}
}

func TestBelongs(t *testing.T) {
	for content, want := range map[string]bool{
		"0::/system.slice/x.service\n":             true,
		"0::/system.slice/x.service/sub\n":         true,
		"0::/system.slice/x.service2\n":            false,
		"9:name=systemd:/system.slice/x.service\n": true,
		"4:memory:/\n0::/system.slice/y.service\n": false,
		"":        false,
		"garbage": false,
		"0::/init.scope\n1:a:b:/system.slice/x.service\n": false,
	} {
		if got := belongs(content, "/system.slice/x.service"); got != want {
			t.Errorf("%q: got %v", content, got)
		}
	}
}

func FuzzBelongs(f *testing.F) {
	f.Add("0::/system.slice/x.service\n")
	f.Fuzz(func(t *testing.T, content string) {
		if belongs(content, "/x") && !strings.Contains(content, "/x") {
			t.Errorf("%q", content)
		}
	})
}

// installed is an environment whose program has the release traits of a version beside it.
func installed(t *testing.T, key string) *env {
	t.Helper()
	e, root := newEnv(t), t.TempDir()
	parts, ok := standin.Find(key)
	if !ok {
		t.Fatalf("no version %s", key)
	}
	for _, r := range parts {
		for _, f := range pack.Contents(r, nil) {
			if err := e.WriteFile(root+f.Path, f.Content, f.Mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.executable = root + "/usr/bin/kibotos-ctrl"
	return e
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// proves K55: ctrl and a gateway serve over loopback, and a gateway ends in time with a connection held open
func TestServe(t *testing.T) {
	e, dir := installed(t, "0.1.4"), t.TempDir()
	ctrl, gateway := freeAddr(t), freeAddr(t)
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("listen = %q\nstate_dir = %q\n", ctrl, filepath.Join(dir, "state"))
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.Mkdir(filepath.Join(dir, "state"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KIBOTOS_CTRL", ctrl)
	t.Setenv("KIBOTOS_LISTEN", gateway)
	t.Setenv("NOTIFY_SOCKET", "")
	start := func(program string, args ...string) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service(program, args)(ctx, e) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	stopCtrl := start("kibotos-ctrl", "serve", "--config", config)
	defer stopCtrl()
	stopGateway := start("kibotos-gw")
	eventually(t, func() bool { return get("http://"+gateway+"/health") == "ok\n" })
	held, err := http.Get("http://" + gateway + "/hold")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Body.Close() }()
	stopGateway()
	if !strings.Contains(e.stderr.(*bytes.Buffer).String(), "warn: 1 connection(s)") {
		t.Errorf("no warning of the open connection: %s", e.stderr)
	}
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var out bytes.Buffer
	_, _ = out.ReadFrom(resp.Body)
	return out.String()
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("did not happen in time")
}
