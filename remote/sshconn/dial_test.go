package sshconn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

func wantKind(t *testing.T, err error, kind remote.Kind, parts ...string) *remote.Error {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got error %v, want kind %s", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error(), p) {
			t.Errorf("%q is not in %q", p, e)
		}
	}
	return e
}

func reads(argv ...string) command.Command {
	return command.Command{Argv: argv, Effect: command.Reads}
}

func otherSigners(t *testing.T) []ssh.Signer {
	t.Helper()
	ec, errEC := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, errRSA := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(errEC, errRSA); err != nil {
		t.Fatal(err)
	}
	a, errA := ssh.NewSignerFromKey(rs)
	b, errB := ssh.NewSignerFromKey(ec)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	return []ssh.Signer{a, b}
}

// proves ssh-hostkey-alg: of three host keys the one on file is asked for, whichever it is
func TestHostKeyOnFileIsUsed(t *testing.T) {
	signers := append(otherSigners(t), remotetest.NewKey(t))
	s := remotetest.NewServer(t, remotetest.ServerOptions{HostKeys: signers})
	for i, only := range signers {
		cfg := configFor(t, s)
		all, err := os.ReadFile(cfg.KnownHosts[0])
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Split(string(all), "\n")[i]
		file := filepath.Join(t.TempDir(), "one")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.KnownHosts = []string{file}
		if _, err := connect(t, cfg).Run(t.Context(), reads("true")); err != nil {
			t.Errorf("%s: %v", only.PublicKey().Type(), err)
		}
	}
}

// proves ssh-kh-strict-yes and ci-known-hosts-prompt: an unknown host is refused at once, with what to do
func TestUnknownHostKey(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	cfg := configFor(t, s)
	cfg.KnownHosts = []string{filepath.Join(t.TempDir(), "none")}
	_, err := sshconn.Dial(t.Context(), cfg)
	e := wantKind(t, err, remote.HostKey, ssh.FingerprintSHA256(s.HostKeys[0].PublicKey()), cfg.KnownHosts[0], "node-a")
	if !strings.Contains(e.Next, "ssh-keyscan -p ") {
		t.Errorf("next: %q", e.Next)
	}
	if st := s.Stats(); st.Connections != 1 || st.KeysOffered != 0 {
		t.Errorf("%+v: tried again, or offered keys to a stranger", st)
	}
}

func TestChangedHostKey(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	cfg := configFor(t, s)
	other := remotetest.NewServer(t, remotetest.ServerOptions{})
	data, err := os.ReadFile(other.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(string(data), " ")
	cfg.KnownHosts = []string{filepath.Join(t.TempDir(), "changed")}
	cfg.HostKeyAlias = "prod-a"
	cfg.HostKeys = sshconn.AcceptNew
	if err := os.WriteFile(cfg.KnownHosts[0], []byte("prod-a "+key), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = sshconn.Dial(t.Context(), cfg)
	e := wantKind(t, err, remote.HostKey, "does not match", cfg.KnownHosts[0]+":1")
	if !strings.HasPrefix(e.Next, "ssh-keygen -R prod-a -f ") {
		t.Errorf("next: %q", e.Next)
	}
}

// proves ssh-dial-hang
func TestSilentServer(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{Silent: true})
	cfg := configFor(t, s)
	cfg.ConnectTimeout = 200 * time.Millisecond
	begin := time.Now()
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Unreachable, "no connection within 200ms")
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestDialIsCancelled(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{Silent: true})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := sshconn.Dial(ctx, configFor(t, s))
	wantKind(t, err, remote.Unreachable)
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestNobodyListens(t *testing.T) {
	cfg := configFor(t, remotetest.NewServer(t, remotetest.ServerOptions{}))
	cfg.Port = 1
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Unreachable, "refused")
}

// proves ssh-maxstartups: dropped handshakes are tried again, and named for what they are
func TestDroppedHandshakes(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{Drop: 2, Preface: "Exceeded MaxStartups\r\n"})
	if _, err := connect(t, configFor(t, s)).Run(t.Context(), reads("true")); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Connections; n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
	s = remotetest.NewServer(t, remotetest.ServerOptions{Drop: 1000, Preface: "Exceeded MaxStartups\r\n"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := sshconn.Dial(ctx, configFor(t, s))
	wantKind(t, err, remote.Unreachable)
}

// proves ssh-jump-port: a hop has its own port, user, key and host key check
func TestJumpHosts(t *testing.T) {
	target := remotetest.NewServer(t, remotetest.ServerOptions{ExpectUser: "ops"})
	second := remotetest.NewServer(t, remotetest.ServerOptions{ExpectUser: "jump2"})
	first := remotetest.NewServer(t, remotetest.ServerOptions{ExpectUser: "jump1"})
	hop := func(s *remotetest.Server, user string) sshconn.Config {
		cfg := configFor(t, s)
		cfg.Host, cfg.User = user, user
		return cfg
	}
	cfg := configFor(t, target)
	cfg.Jump = []sshconn.Config{hop(first, "jump1"), hop(second, "jump2")}
	r, err := connect(t, cfg).Run(t.Context(), reads("echo", "through two"))
	if err != nil || string(r.Stdout) != "through two\n" {
		t.Fatalf("got %+v, %v", r, err)
	}
	if f := first.Stats().Forwards; len(f) != 1 || len(second.Stats().Forwards) != 1 {
		t.Errorf("forwards %v", f)
	}
	bad := configFor(t, target)
	bad.Jump = []sshconn.Config{hop(first, "jump1")}
	bad.Jump[0].KnownHosts = nil
	_, err = sshconn.Dial(t.Context(), bad)
	wantKind(t, err, remote.HostKey, "host node-a:", "jump host 1 (jump1)")
}

// proves ssh-silent-apt: a peer that is gone without a word is noticed
func TestKeepalive(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{Mute: true})
	cfg := configFor(t, s)
	cfg.Keepalive, cfg.KeepaliveCount = 50*time.Millisecond, 3
	begin := time.Now()
	_, err := connect(t, cfg).Run(t.Context(), reads("sleep", "20"))
	wantKind(t, err, remote.Lost, "keepalives")
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestConnectionLost(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	conn := connect(t, configFor(t, s))
	h, err := conn.Hold(t.Context(), reads("sh", "-c", "echo held; cat"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, s.DropAll)
	got, err := conn.RunBatch(t.Context(), command.Batch{Commands: []command.Command{reads("echo", "one"), reads("sleep", "20")}})
	wantKind(t, err, remote.Lost)
	if len(got) != 1 || string(got[0].Stdout) != "one\n" {
		t.Errorf("got %+v, want what was known", got)
	}
	select {
	case <-h.Lost:
	case <-time.After(3 * time.Second):
		t.Error("the lock does not know that it is gone")
	}
}

// proves ssh-wait-on-background
func TestChildLeftBehind(t *testing.T) {
	conn := connect(t, configFor(t, remotetest.NewServer(t, remotetest.ServerOptions{})))
	begin := time.Now()
	r, err := conn.Run(t.Context(), reads("sh", "-c", "sleep 20 & echo done"))
	if err != nil || string(r.Stdout) != "done\n" || r.Exit != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
	if d := time.Since(begin); d > 3*time.Second {
		t.Errorf("took %s", d)
	}
}

// proves ssh-expired-password
func TestLoginShellRunsNothing(t *testing.T) {
	for said, want := range map[string]string{
		"WARNING: Your password has expired.\nPassword change required but no TTY available.\n": "the password of user ops has expired",
		"This account is currently not available.\n":                                            "ran nothing (status 1): This account is currently",
	} {
		conn := connect(t, configFor(t, remotetest.NewServer(t, remotetest.ServerOptions{LoginOutput: said})))
		_, err := conn.Run(t.Context(), reads("true"))
		wantKind(t, err, remote.Auth, want)
	}
}

// proves that the facts of a host cost one connection and one exec
func TestOneExecForABatch(t *testing.T) {
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	conn := connect(t, configFor(t, s))
	b := command.Batch{}
	for range 30 {
		b.Commands = append(b.Commands, reads("true"))
	}
	if got, err := conn.RunBatch(t.Context(), b); err != nil || len(got) != 30 {
		t.Fatalf("%d results, %v", len(got), err)
	}
	if st := s.Stats(); st.Connections != 1 || len(st.Execs) != 1 {
		t.Errorf("%+v", st)
	}
}

// proves that a jump host is not flooded: of many hosts behind it only a few log in at a time
func TestJumpHostIsNotFlooded(t *testing.T) {
	target := remotetest.NewServer(t, remotetest.ServerOptions{})
	bastion := remotetest.NewServer(t, remotetest.ServerOptions{})
	cfg := configFor(t, target)
	cfg.Jump = []sshconn.Config{configFor(t, bastion)}
	d := &sshconn.Dialer{}
	errs := make(chan error)
	for range 20 {
		go func() {
			conn, err := d.Dial(t.Context(), cfg)
			if err == nil {
				err = conn.Close()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := bastion.Stats().MostPending; n > 8 {
		t.Errorf("%d logins under way at a time", n)
	}
}
