package simfleet

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
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

func TestSmoke(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 2, GW: 1, InstancesPerNode: 2, AgentVersion: "0.1.0"})
	for _, tc := range []struct{ host, line, stdin string }{
		{"ctrl-1", "kibo node list", ""},
		{"ctrl-1", "/bin/sh -s", "echo hello; uname -m\nsudo -n -- id\nread x\nvalue\necho got $x\nnosuch; echo $?\nexit 3\n"},
		{"node-1", "systemctl show -p Id,ActiveState,MainPID,ExecMainStartTimestampMonotonic 'kibotos-vmm-*.service'", ""},
		{"node-1", "sudo -n kibo-agent status --output json; ls /var/lib/kibotos/node", ""},
		{"node-1", "sudo -n /usr/bin/kibotos-node check-upgrade --preview --config /etc/kibotos/node/config.toml --runtime-dir /usr/lib/kibotos/node", ""},
		{"ctrl-1", "sudo -n -u kibotos-ctrl /usr/bin/kibotos-ctrl check-upgrade --config /etc/kibotos/ctrl/config.toml", ""},
	} {
		r := execLine(t, dial(t, f, tc.host), tc.line, tc.stdin)
		t.Logf("%s: %s\n%s%s-> %d", tc.host, tc.line, r.out, r.err, r.exit)
	}
	_ = context.Background
	t.Log(f.Machine("ctrl-1").Unknown(), f.Machine("node-1").Unknown(), f.Machine("gw-1").Unknown())
}
