package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
)

// TestHeldNode: a node that somebody holds is not even drained; the others go first, and it is come back to when it is released.
// proves Z7
func TestHeldNode(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2, GW: 1, AgentVersion: "0.1.0"})
	m := b.machine("node-1")
	if _, err := m.Run(t.Context(), "root", "kibo-agent", "hold", "--id", "night", "--why", "backup runs"); err != nil {
		t.Fatal(err)
	}
	go func() {
		for b.installed("gw-1", release.GW) != "0.1.4" && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if got := b.installed("node-1", release.Node); got != "0.1.2" {
			t.Errorf("the held node was touched: %s", got)
		}
		_, _ = m.Run(t.Context(), "root", "kibo-agent", "release", "--id", "night") // the walk would not end without it
	}()
	s := b.apply()
	b.want(s, exitDone, "backup runs", "node-1 is held, and left for later")
	if strings.Index(s.out, "upgrade node node-2") > strings.LastIndex(s.out, "node-1  drain the node") {
		t.Errorf("node-2 did not go first:\n%s", s.out)
	}
	b.onTarget("0.1.4")
}

// TestStaysHeld: everything else is done, the held host is named, nothing was begun on it, and the run can be gone on with.
func TestStaysHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2, AgentVersion: "0.1.0"})
	m := b.machine("node-1")
	if _, err := m.Run(t.Context(), "root", "kibo-agent", "hold", "--id", "night", "--why", "backup runs"); err != nil {
		t.Fatal(err)
	}
	b.want(b.apply("-e", `{"kibo_timeouts": {"held": 1}}`), exitGate, "complete except for 1 held hosts: node-1", "nothing was begun")
	if got := b.installed("node-2", release.Node); got != "0.1.4" {
		t.Errorf("node-2 is %s", got)
	}
	if _, err := m.Run(t.Context(), "root", "kibo-agent", "release", "--id", "night"); err != nil {
		t.Fatal(err)
	}
	b.want(b.apply(), exitDone, "going on with run")
	b.onTarget("0.1.4")
}
