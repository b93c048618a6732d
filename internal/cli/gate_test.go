package cli

import (
	"testing"

	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

// TestGateCommands: windows and holds are placed, shown and taken away on every selected host; a host that cannot be asked is named
// and keeps the others from nothing.
// proves Z6
func TestGateCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2, AgentVersion: "0.1.0"})
	open := func(name string) bool { v, _ := b.machine(name).Gate(); return v.Open }
	b.want(b.run("gate", "allow", "--for", "30m", "--package", "kibotos-node=0.1.4", "-l", "kibo_node", "--reason", "by hand"), exitDone, "node-1", "node-2")
	if !open("node-1") || !open("node-2") || open("ctrl-1") {
		t.Error("the window is not where it was asked for")
	}
	b.want(b.run("gate", "status"), exitDone, "by hand", "kibotos-node")
	b.want(b.run("gate", "close"), exitDone)
	if open("node-1") || open("node-2") {
		t.Error("a window is left open")
	}
	b.want(b.run("gate", "close"), exitDone) // once more is no error

	b.want(b.run("gate", "hold", "--why", "customer demo", "-l", "node-1"), exitDone, "node-1")
	b.want(b.run("gate", "status"), exitDone, "customer demo")
	b.want(b.run("gate", "release", "--all"), exitDone)
	if got := b.run("gate", "status"); got.code != exitDone || len(got.out) == 0 {
		t.Errorf("%s", got)
	}

	b.fault("node-2", func(f *host.Faults) { f.Refuse = true })
	b.want(b.run("gate", "allow", "--for", "5m"), exitUnreachable, "node-2", "1 of 3 hosts")
	if !open("node-1") {
		t.Error("one dead host kept the others from their window")
	}
	for _, bad := range [][]string{
		{"gate", "allow"}, {"gate", "allow", "--for", "5m", "--until", "2030-01-01T00:00:00Z"}, {"gate", "allow", "--until", "02:30"},
		{"gate", "allow", "--until", "2001-01-01T00:00:00Z"}, {"gate", "allow", "--for", "5m", "--package", "kibotos-node"}, {"gate", "hold"}, {"gate", "release"},
	} {
		b.want(b.run(bad...), exitUsage)
	}
}

// TestNoWindowInAWalk: while a run holds the fleet its windows are not replaced.
func TestNoWindowInAWalk(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1, AgentVersion: "0.1.0"})
	s := b.session()
	ctrl, _ := s.ctrl()
	lock, err := s.lock(t.Context(), ctrl, "r-1")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	b.want(b.run("gate", "allow", "--for", "5m"), exitHeld, "another run holds the fleet", "r-1")
	b.want(b.run("gate", "allow", "--for", "5m", "--force"), exitDone)
	b.want(b.run("agent", "install", "--agent-deb", b.debs, "--yes"), exitHeld)
}
