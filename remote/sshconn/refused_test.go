package sshconn

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
)

// dialerFor does not wait between attempts, and writes down how long it would have.
func dialerFor(pauses *[]time.Duration) *Dialer {
	return &Dialer{wait: func(d time.Duration) <-chan time.Time {
		*pauses = append(*pauses, d)
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}}
}

func to(t *testing.T, s *remotetest.Server) Config {
	t.Helper()
	return Config{Host: "node-a", Address: s.Address, Port: s.Port, User: "ops", KnownHosts: []string{s.KnownHosts()}}
}

func kindOf(err error) remote.Kind {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// proves ssh-persourcepenalties: to a server that penalises this address every fast attempt would be one more
func TestPenalties(t *testing.T) {
	var pauses []time.Duration
	s := remotetest.NewServer(t, remotetest.ServerOptions{Drop: 1000, Preface: "Not allowed at this time\r\n"})
	_, err := dialerFor(&pauses).Dial(t.Context(), to(t, s))
	if kindOf(err) != remote.Unreachable || !strings.Contains(err.Error(), "it said: Not allowed at this time") {
		t.Errorf("got %v", err)
	}
	if len(pauses) != 3 || pauses[0] < 15*time.Second || s.Stats().Connections != 4 {
		t.Errorf("pauses %v, %d connections", pauses, s.Stats().Connections)
	}
}

// proves that only what is worth it is tried again, and no more often than was asked for
func TestRetries(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	refused := remotetest.NewServer(t, remotetest.ServerOptions{ExpectUser: "another"})
	closed := to(t, s)
	closed.Port = 1
	stranger := to(t, s)
	stranger.KnownHosts = nil
	for name, c := range map[string]struct {
		cfg      Config
		retries  int
		attempts int
		kind     remote.Kind
	}{
		"no answer":        {closed, 0, 1, remote.Unreachable},
		"no answer, again": {closed, 3, 4, remote.Unreachable},
		"login refused":    {to(t, refused), 3, 1, remote.Auth},
		"unknown host":     {stranger, 3, 1, remote.HostKey},
	} {
		t.Run(name, func(t *testing.T) {
			var pauses []time.Duration
			c.cfg.Retries = c.retries
			_, err := dialerFor(&pauses).Dial(t.Context(), c.cfg)
			if kindOf(err) != c.kind || len(pauses) != c.attempts-1 {
				t.Errorf("%d attempts, %v", len(pauses)+1, err)
			}
		})
	}
}

// proves that a server that hangs up during login is not asked again: that is how locked and expired accounts look
func TestCutDuringLogin(t *testing.T) {
	var pauses []time.Duration
	s := remotetest.NewServer(t, remotetest.ServerOptions{CutLogin: true})
	_, err := dialerFor(&pauses).Dial(t.Context(), to(t, s))
	if kindOf(err) != remote.Auth || !strings.Contains(err.Error(), "closed the connection during login of user ops") {
		t.Errorf("got %v", err)
	}
	if len(pauses) != 0 || s.Stats().Connections != 1 {
		t.Errorf("%d connections", s.Stats().Connections)
	}
}

// proves that what a host says is shown as text, and not at length
func TestHostileWords(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{LoginOutput: "\x1b[2J\x1b]0;owned\a" + strings.Repeat("A", 1<<20) + "\n"})
	file := keyIn(t)
	cfg := to(t, s)
	cfg.KeyFiles = []string{file}
	conn, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Run(t.Context(), command.Command{Argv: []string{"true"}, Effect: command.Reads})
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\a") || len(err.Error()) > 2*maxSaid {
		t.Errorf("%d bytes: %.300q", len(err.Error()), err)
	}
}

// proves that of two machines that answer to one new name, one is refused
func TestTwoMachinesOfOneNewName(t *testing.T) {
	d := &Dialer{}
	cfg := Config{Host: "a", Address: "a", HostKeys: AcceptNew, KnownHosts: []string{filepath.Join(t.TempDir(), "known")}}.withDefaults()
	one, err1 := newHostCheck(d, cfg)
	two, err2 := newHostCheck(d, cfg) // both logins began before either key was recorded
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	key := newED25519(t).PublicKey()
	if err := errors.Join(one.verify("", nil, key), two.verify("", nil, key)); err != nil {
		t.Error(err)
	}
	other := two.verify("", nil, newECDSA(t).PublicKey())
	var refused *hostKeyError
	if !errors.As(other, &refused) {
		t.Errorf("the second machine: %v", other)
	}
	if data, _ := os.ReadFile(cfg.KnownHosts[0]); strings.Count(string(data), "\n") != 1 {
		t.Errorf("recorded:\n%s", data)
	}
}

func TestShortHostKey(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	key := signerOf(t, private, err)
	for bits, ok := range map[int]bool{0: true, 2048: true, 3072: false} {
		h := check(t, Config{Host: "a", Address: "a", MinRSABits: bits, KnownHosts: []string{known(t, line("a", key))}})
		if err := h.verify("", nil, key.PublicKey()); (err == nil) != ok {
			t.Errorf("%d bits wanted: %v", bits, err)
		}
	}
}

// proves that an agent that never answers does not hold a login up for ever
func TestAgentHangs(t *testing.T) {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	cfg := to(t, s)
	cfg.AgentSocket, cfg.ConnectTimeout = silent.Addr().String(), 200*time.Millisecond
	begin := time.Now()
	if _, err := Dial(t.Context(), cfg); kindOf(err) != remote.Unreachable || time.Since(begin) > 3*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// proves that nothing is left running of connections that were closed, refused or given up
func TestNothingIsLeftRunning(t *testing.T) {
	good := remotetest.NewServer(t, remotetest.ServerOptions{})
	silent := remotetest.NewServer(t, remotetest.ServerOptions{Silent: true})
	file := keyIn(t)
	before := runtime.NumGoroutine()
	for range 5 {
		cfg := to(t, good)
		cfg.KeyFiles = []string{file}
		conn, err := Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		sh := func(script string) command.Command {
			return command.Command{Argv: []string{"sh", "-c", script}, Effect: command.Reads}
		}
		held, err := conn.Hold(t.Context(), sh("echo held; cat"))
		_, early := conn.Hold(t.Context(), sh("exit 3"))
		if err != nil || early == nil {
			t.Fatal(err, early)
		}
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, late := conn.Run(limited, sh("sleep 5"))
		_, never := conn.Hold(limited, sh("sleep 5"))
		cancel()
		if late == nil || never == nil {
			t.Fatal("time limits do not hold")
		}
		if err := errors.Join(held.Release(), conn.Close()); err != nil {
			t.Error(err)
		}
		cfg.KnownHosts = nil
		_, unknown := Dial(t.Context(), cfg)
		cfg = to(t, silent)
		cfg.ConnectTimeout = 20 * time.Millisecond
		_, hung := Dial(t.Context(), cfg)
		if unknown == nil || hung == nil {
			t.Fatal("connected")
		}
	}
	good.DropAll()
	silent.DropAll()
	now := 0
	for range 100 {
		if now = runtime.NumGoroutine(); now <= before+2 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 64<<10)
	t.Errorf("%d goroutines, %d before:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
}

func keyIn(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
