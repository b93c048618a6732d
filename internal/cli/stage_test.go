package cli

import (
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

// TestDiskFull: a disk without room is found before anything is stopped. Case: stage-disk-full.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	b.fault("node-1", func(f *host.Faults) { f.DiskFull = true })
	if s := b.apply(); s.code != exitBlocked && s.code != exitStopped {
		t.Fatalf("exit code %d\n%s", s.code, s)
	}
	for _, m := range b.fleet.Machines() {
		for _, p := range m.Spec.Parts {
			if u := m.Unit(p.Unit()); u.Active != "active" || b.installed(m.Name(), p) != "0.1.2" {
				t.Errorf("%s: %s is %s", m.Name(), u.Name, u.Active)
			}
		}
	}
	b.fault("node-1", func(f *host.Faults) { f.DiskFull = false })
	b.want(b.apply(), exitDone)
	b.onTarget("0.1.4")
}

// TestNobodyIsAsked: what installs a package never waits for an answer, sudo or not. Case: sudo-env-dropped.
func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.apply("--check")
	b.want(s, exitDone)
	for line := range strings.Lines(s.out) {
		if strings.Contains(line, "apt-get install") && !strings.Contains(line, "sudo -n -- env DEBIAN_FRONTEND=noninteractive") && !strings.Contains(line, "kibo-agent run") {
			t.Errorf("apt-get may ask: %s", line)
		}
	}
	if got := b.installed("node-1", release.Node); got != "0.1.2" {
		t.Errorf("check mode installed %s", got)
	}
}
