// Package remotetest has what tests of other rooms need to stand in for hosts: a strict scripted fake, a real SSH
// server in the test's process, and the suite that everything that claims to be a remote.Conn must pass.
package remotetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Conformance is what every remote.Conn that reaches a host must do. connect returns a new connection to a host on which
// the login user may write to its home directory.
func Conformance(t *testing.T, connect func(t *testing.T) remote.Conn) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, conn remote.Conn)
	}{
		{"results", conformResults}, {"input", conformInput}, {"stop on failure", conformStop},
		{"empty batch", conformEmpty}, {"time limit", conformTimeLimit}, {"cancel", conformCancel},
		{"concurrent", conformConcurrent}, {"upload", conformUpload}, {"upload over", conformUploadOver},
		{"upload wrong checksum", conformBadSum}, {"upload no directory", conformNoDirectory},
		{"hold", conformHold}, {"hold fails", conformHoldFails}, {"closed", conformClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := connect(t)
			defer func() { _ = conn.Close() }()
			c.test(t, conn)
		})
	}
}

func reads(argv ...string) command.Command {
	return command.Command{Argv: argv, Effect: command.Reads}
}

func run(t *testing.T, conn remote.Conn, c command.Command) command.Result {
	t.Helper()
	r, err := conn.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	return r
}

func wantKind(t *testing.T, err error, kind remote.Kind) {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("got error %v, want kind %s", err, kind)
	} else if e.Host == "" {
		t.Errorf("error names no host: %v", err)
	}
}

func conformResults(t *testing.T, conn remote.Conn) {
	b := command.Batch{Commands: []command.Command{
		reads("printf", "%s", "a b"),
		reads("sh", "-c", `printf out; printf err >&2; exit 7`),
		reads("no-such-program-here"),
		reads("printf", "%s|", "", "it's", `$HOME`, "*", `back\slash`),
	}}
	got, err := conn.RunBatch(t.Context(), b)
	if err != nil || len(got) != 4 {
		t.Fatalf("got %d results, error %v", len(got), err)
	}
	if string(got[0].Stdout) != "a b" || got[0].Exit != 0 || len(got[0].Stderr) != 0 {
		t.Errorf("got %+v", got[0])
	}
	if string(got[1].Stdout) != "out" || string(got[1].Stderr) != "err" || got[1].Exit != 7 {
		t.Errorf("got %+v", got[1])
	}
	if got[2].Exit != 127 || len(got[2].Stderr) == 0 {
		t.Errorf("got %+v", got[2])
	}
	if string(got[3].Stdout) != `|it's|$HOME|*|back\slash|` {
		t.Errorf("got %q", got[3].Stdout)
	}
}

func conformInput(t *testing.T, conn remote.Conn) {
	data := []byte("first\n'quoted' %d \\n \x00\x01\xfe\xff no line end")
	c := reads("cat")
	c.Stdin = data
	if r := run(t, conn, c); !bytes.Equal(r.Stdout, data) {
		t.Errorf("got %q", r.Stdout)
	}
	if r := run(t, conn, reads("cat")); len(r.Stdout) != 0 || r.Exit != 0 {
		t.Errorf("a command without input read %q", r.Stdout)
	}
}

func conformStop(t *testing.T, conn remote.Conn) {
	b := command.Batch{StopOnFailure: true, Commands: []command.Command{reads("true"), reads("false"), reads("true")}}
	got, err := conn.RunBatch(t.Context(), b)
	if err != nil || len(got) != 2 || got[1].Exit != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func conformEmpty(t *testing.T, conn remote.Conn) {
	got, err := conn.RunBatch(t.Context(), command.Batch{})
	if err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func conformTimeLimit(t *testing.T, conn remote.Conn) {
	slow := reads("sleep", "20")
	slow.Timeout = 200 * time.Millisecond
	begin := time.Now()
	got, err := conn.RunBatch(t.Context(), command.Batch{Commands: []command.Command{reads("true"), slow}})
	wantKind(t, err, remote.TimedOut)
	if len(got) != 1 {
		t.Errorf("%d results, want that of the command that ended", len(got))
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
	if r := run(t, conn, reads("echo", "still here")); string(r.Stdout) != "still here\n" {
		t.Errorf("the connection is of no use afterwards: %+v", r)
	}
}

func conformCancel(t *testing.T, conn remote.Conn) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := conn.Run(ctx, reads("sleep", "20"))
	wantKind(t, err, remote.TimedOut)
}

func conformConcurrent(t *testing.T, conn remote.Conn) {
	errs := make(chan error)
	for i := range 20 {
		go func() {
			want := fmt.Sprintf("n%d\n", i)
			r, err := conn.Run(t.Context(), reads("echo", fmt.Sprintf("n%d", i)))
			if err == nil && string(r.Stdout) != want {
				err = fmt.Errorf("got %q, want %q", r.Stdout, want)
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func upload(data []byte, path string) remote.Upload {
	return remote.Upload{Source: bytes.NewReader(data), Size: int64(len(data)), SHA256: hexSum(data), Path: path, Mode: 0o644}
}

func conformUpload(t *testing.T, conn remote.Conn) {
	for name, size := range map[string]int{"empty": 0, "one byte": 1, "large": 3<<20 + 17} {
		data := bytes.Repeat([]byte("kibo\x00\xff"), size/6+1)[:size]
		u := upload(data, "up-"+strings.ReplaceAll(name, " ", "_"))
		var last int64
		u.Progress = func(sent, _ int64) { last = sent }
		if err := conn.Upload(t.Context(), u); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := run(t, conn, reads("sha256sum", u.Path))
		if !strings.HasPrefix(string(r.Stdout), u.SHA256) {
			t.Errorf("%s: checksum %s, want %s", name, r.Stdout, u.SHA256)
		}
		if last != u.Size {
			t.Errorf("%s: progress ended at %d of %d", name, last, u.Size)
		}
	}
}

func conformUploadOver(t *testing.T, conn remote.Conn) {
	for _, text := range []string{"old and longer", "new"} {
		if err := conn.Upload(t.Context(), upload([]byte(text), "over")); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, conn, reads("cat", "over")); string(r.Stdout) != "new" {
		t.Errorf("got %q", r.Stdout)
	}
}

func conformBadSum(t *testing.T, conn remote.Conn) {
	u := upload([]byte("these bytes"), "wrong")
	u.SHA256 = strings.Repeat("00", 32)
	wantKind(t, conn.Upload(t.Context(), u), remote.BadTransfer)
	if r := run(t, conn, reads("test", "-e", "wrong")); r.Exit != 1 {
		t.Errorf("a file that failed verification was left in place")
	}
}

func conformNoDirectory(t *testing.T, conn remote.Conn) {
	wantKind(t, conn.Upload(t.Context(), upload([]byte("x"), "no/such/directory/file")), remote.BadTransfer)
}

func conformHold(t *testing.T, conn remote.Conn) {
	h, err := conn.Hold(t.Context(), reads("sh", "-c", `echo "held $1"; cat >/dev/null`, "sh", "by me"))
	if err != nil {
		t.Fatal(err)
	}
	if h.First != "held by me" {
		t.Errorf("first line %q", h.First)
	}
	select {
	case <-h.Lost:
		t.Fatal("lost at once")
	case <-time.After(50 * time.Millisecond):
	}
	run(t, conn, reads("true")) // others work meanwhile
	if err := h.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
	select {
	case <-h.Lost:
	case <-time.After(5 * time.Second):
		t.Error("not lost after its release")
	}
	if err := h.Release(); err != nil {
		t.Errorf("second release: %v", err)
	}
}

func conformHoldFails(t *testing.T, conn remote.Conn) {
	_, err := conn.Hold(t.Context(), reads("sh", "-c", "echo taken >&2; exit 7"))
	wantKind(t, err, remote.Ended)
	var exit *remote.ExitError
	if !errors.As(err, &exit) || exit.Result.Exit != 7 || !strings.Contains(string(exit.Result.Stderr), "taken") {
		t.Errorf("got %v", err)
	}
}

func conformClosed(t *testing.T, conn remote.Conn) {
	if err := conn.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	_, err := conn.Run(t.Context(), reads("true"))
	wantKind(t, err, remote.Lost)
	_ = conn.Close()
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func firstLine(data []byte) string {
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}
