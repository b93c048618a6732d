package simfleet

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"testing"

	"al.essio.dev/pkg/shellescape"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/conformance"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

func TestConformance(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 2, GW: 1, InstancesPerNode: 2, AgentVersion: "0.1.0"})
	debs := map[string][]byte{}
	for _, p := range []release.Part{release.Ctrl, release.Node, release.GW} {
		data, err := f.debs.part("0.1.4", p)
		if err != nil {
			t.Fatal(err)
		}
		debs[string(p)] = data
	}
	conformance.Run(t, conformance.Fleet{
		Exec: func(_ context.Context, host string, argv []string, stdin string) (conformance.Output, error) {
			r := execLine(t, dial(t, f, host), shellescape.QuoteCommand(argv), stdin)
			return conformance.Output{Stdout: r.out, Stderr: r.err, Exit: r.exit}, nil
		},
		Ctrl: "ctrl-1", Node: "node-1", GW: "gw-1", NodeName: "node-1", From: "0.1.2", To: "0.1.4", Debs: debs, Instances: 2,
	})
	for _, m := range f.Machines() {
		for _, what := range m.Unknown() {
			// "rest" is what the suite's script leaves to `read`.
			if what != "no-such-program-here" && what != "sudo no-such-program-here" && what != "rest" {
				t.Errorf("%s: unknown: %s", m.Name(), what)
			}
		}
	}
}

// connTo reaches a host with the client that upgrades use.
func connTo(t *testing.T, f *Fleet, inv Inventory, name string) *sshconn.Conn {
	t.Helper()
	m := f.Machine(name)
	address, port, err := net.SplitHostPort(m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sshconn.Dial(t.Context(), sshconn.Config{
		Host: name, Address: address, Port: n, User: f.User(), KeyFiles: []string{inv.Key}, KnownHosts: []string{inv.KnownHosts},
		IdentitiesOnly: true, BecomePassword: []byte(m.Spec.Password),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func inventoryOf(t *testing.T, f *Fleet) Inventory {
	t.Helper()
	inv, err := f.WriteInventory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestRemoteConformance(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "plain"}, {Name: "password", Password: "secret"}, {Name: "bare"}}})
	inv := inventoryOf(t, f)
	for _, m := range f.Machines() {
		t.Run(m.Name(), func(t *testing.T) {
			remotetest.Conformance(t, func(t *testing.T) remote.Conn { return connTo(t, f, inv, m.Name()) })
		})
	}
}

func TestFactsAreAllKnown(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 1, E2B: 1, GW: 1, InstancesPerNode: 3, AgentVersion: "0.1.0"})
	inv := inventoryOf(t, f)
	for _, m := range f.Machines() {
		facts, err := checks.Gather(t.Context(), connTo(t, f, inv, m.Name()), checks.Want{Host: m.Name(), Parts: m.Spec.Parts, StageDir: "/var/lib/kibo-rollout/stage/x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			second(facts.Clock.Get()), second(facts.Boot.Get()), second(facts.Machine.Get()), second(facts.OS.Get()), second(facts.Arch.Get()),
			second(facts.Sudo.Get()), second(facts.DpkgAudit.Get()), second(facts.Packages.Get()), second(facts.Agent.Get()),
			second(facts.Staged.Get()), second(facts.Disk.Get()),
		} {
			if err != nil {
				t.Errorf("%s: %v", m.Name(), err)
			}
		}
		for _, p := range facts.Parts {
			u, err := p.Unit.Get()
			if err != nil || !u.Running() || u.Stale || u.ExecOverride || u.Processes != 1 {
				t.Errorf("%s: unit %+v, %v", m.Name(), u, err)
			}
			if v, err := p.Version.Get(); err != nil || v != "0.1.2" {
				t.Errorf("%s: version %q, %v", m.Name(), v, err)
			}
		}
		if s := m.Stats(); s.Execs != 1 {
			t.Errorf("%s: %d execs for all facts, want 1", m.Name(), s.Execs)
		}
		if u := m.Unknown(); len(u) > 0 {
			t.Errorf("%s: unknown: %q", m.Name(), u)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSameInputSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := writeAgentDeb(w, "1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("packing twice gives different bytes")
	}
}
