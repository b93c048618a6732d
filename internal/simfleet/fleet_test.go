package simfleet

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// newFleet starts a fleet for one test.
func newFleet(t *testing.T, s Spec) *Fleet {
	t.Helper()
	f, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func dial(t *testing.T, f *Fleet, name string) *ssh.Client {
	t.Helper()
	signer, err := f.Signer()
	if err != nil {
		t.Fatal(err)
	}
	m := f.Machine(name)
	c, err := ssh.Dial("tcp", m.Addr(), &ssh.ClientConfig{
		User: f.User(), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.FixedHostKey(m.HostKey()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type result struct {
	out, err string
	exit     int
}

func execLine(t *testing.T, c *ssh.Client, line, stdin string) result {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var out, errs bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(stdin), &out, &errs
	r := result{}
	err = s.Run(line)
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		r.exit = exit.ExitStatus()
	} else if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.out, r.err = out.String(), errs.String()
	return r
}

// hostRoot is root on a host.
var hostRoot = memfs.Cred{}

func TestStrict(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}})
	c := dial(t, f, "a")
	for line, want := range map[string]string{
		"frobnicate --all":                     "frobnicate",
		"systemctl show -p Colour some.target": "systemctl show -p Colour",
		"df -h":                                "df -h",
		"mkdir --colour x":                     "mkdir --colour",
		"dpkg --purge x":                       "/usr/bin/dpkg --purge x",
	} {
		before := len(f.Machine("a").Unknown())
		execLine(t, c, line, "")
		if got := f.Machine("a").Unknown(); len(got) != before+1 || got[before] != want {
			t.Errorf("%s: noted %q, want %q", line, got[before:], want)
		}
	}
	if r := execLine(t, c, "frobnicate", ""); r.exit != 127 || r.err != "sh: 1: frobnicate: not found\n" {
		t.Errorf("got %+v", r)
	}
}

func TestSudo(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "free"}, {Name: "password", Password: "secret"}, {Name: "none", NoSudo: true}}})
	for _, tc := range []struct {
		host, line, stdin string
		exit              int
		out               string
	}{
		{"free", "sudo -n -- id -u", "", 0, "0\n"},
		{"free", "sudo -n -u ops -- id -un", "", 0, "ops\n"},
		{"password", "sudo -n -- id -u", "", 1, ""},
		{"password", "sudo -S -p '' -- id -u", "wrong\nsecret\n", 0, "0\n"},
		{"password", "sudo -S -p '' -- cat", "secret\nrest\n", 0, "rest\n"},
		{"password", "sudo -S -p '' -- id -u", "wrong\n", 1, ""},
		{"none", "sudo -n -- id -u", "", 1, ""},
	} {
		if r := execLine(t, dial(t, f, tc.host), tc.line, tc.stdin); r.exit != tc.exit || r.out != tc.out {
			t.Errorf("%s: %s: %+v", tc.host, tc.line, r)
		}
	}
}

// The hosts live by the injected clock.
func TestInjectedClock(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}, Now: func() time.Time { return now }})
	if r := execLine(t, dial(t, f, "a"), "date -u +%s", ""); r.out != "1893553445\n" {
		t.Errorf("got %q", r.out)
	}
}

func TestManyHosts(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 200, InstancesPerNode: 1})
	if r := execLine(t, dial(t, f, "ctrl-1"), "kibo node list | grep -c ' READY '", ""); r.out != "200\n" {
		t.Errorf("got %+v", r)
	}
	if f.Machine("node-007") == nil || f.Machine("node-007").Addr() == f.Machine("node-008").Addr() {
		t.Error("hosts are not named or share a port")
	}
}

func TestBadSpec(t *testing.T) {
	for _, s := range []Spec{
		{Version: "9.9.9", Ctrl: 1},
		{Hosts: []HostSpec{{Name: "a"}, {Name: "a"}}},
		{Hosts: []HostSpec{{}}},
	} {
		if f, err := New(s); err == nil {
			_ = f.Close()
			t.Errorf("a fleet was made of %+v", s)
		}
	}
}
