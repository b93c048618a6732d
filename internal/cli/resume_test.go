package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/run"
)

// applyUntil applies, and does something at the first event of a kind for a step.
func (b *bench) applyUntil(kind run.EventKind, step string, do func()) error {
	b.t.Helper()
	var out, errs bytes.Buffer
	w := b.world(&out, &errs)
	s, err := w.open(&fleetFlags{inventory: []string{b.inv.File}, limit: "all", forks: 50, output: "text"})
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.close()
	p, err := s.prepare(b.t.Context(), &targetFlags{debs: []string{b.debs}, to: "0.1.4", serial: 1}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	done := false
	return s.walk(b.t.Context(), p.plan, walking{whole: p.plan, observe: func(e run.Event) {
		if e.Kind == kind && e.Step == step && !done {
			done = true
			do()
		}
	}})
}

// stopAfter applies and asks to stop once a step is done.
func (b *bench) stopAfter(step string) {
	b.t.Helper()
	if err := b.applyUntil(run.StepDone, step, func() { close(b.stop) }); codeOf(err) != exitInterrupted {
		b.t.Fatalf("not interrupted: %v", err)
	}
	b.stop = make(chan struct{})
}

func (b *bench) installed(name string, part release.Part) string {
	pkg, _ := b.machine(name).Installed(part.Package())
	return pkg.Version
}

// TestCheckLeavesRunsAlone: what somebody else's unfinished run staged is not cleaned away by a check.
func TestCheckLeavesRunsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	b.stopAfter("node-1/node/check")
	b.want(b.run("check", "--debs", b.debs), exitDone)
	if len(b.list(b.machine("node-1"), "/var/lib/kibo-rollout/stage")) == 0 {
		t.Error("check removed what the unfinished run needs")
	}
	b.want(b.apply(), exitDone)
	b.onTarget("0.1.4")
}

// TestLimitOnResume: a run is gone on with on the selected hosts only, and stays unfinished until the others are done too. ctrl's
// record is found whatever is selected; a dead host that is left out holds nobody up.
func TestLimitOnResume(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 3})
	b.stopAfter("ctrl-1/ctrl/stop")
	b.fault("node-2", func(f *host.Faults) { f.Refuse = true })
	b.want(b.run("resume", "--debs", b.debs, "--yes"), exitUnreachable, "node-2")
	b.want(b.run("resume", "--debs", b.debs, "--yes", "-l", "ctrl-1:node-1"), exitStopped, "the run has others left")
	if got := b.installed("node-3", release.Node); got != "0.1.2" {
		t.Errorf("node-3 was not selected and is %s", got)
	}
	if got := b.installed("node-1", release.Node); got != "0.1.4" {
		t.Errorf("node-1 is %s", got)
	}
	b.want(b.run("resume", "--debs", b.debs, "--yes", "-l", "node-3"), exitStopped)
	b.fault("node-2", func(f *host.Faults) { f.Refuse = false })
	b.want(b.run("resume", "--debs", b.debs, "--yes"), exitDone)
	b.onTarget("0.1.4")
	b.want(b.run("resume"), exitDone, "no run is unfinished")
}

// TestWorkspaceEnds: a Workspace that its owner stops after its node was proved is no loss of the run.
// proves K41
func TestWorkspaceEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	err := b.applyUntil(run.StepDone, "node-2/node/drain", func() { b.endVM("node-1") })
	if err != nil {
		t.Errorf("the run failed: %v", err)
	}
	b.onTarget("0.1.4")
}

// TestWorkspaceLost: a VM that ends while its node is down is a loss, and the node stays drained.
// proves K41
func TestWorkspaceLost(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	err := b.applyUntil(run.StepStarted, "node-1/node/install", func() { b.endVM("node-1") })
	if codeOf(err) != exitStopped || !strings.Contains(err.Error(), "not the same process") {
		t.Errorf("nobody noticed: %v", err)
	}
	if got := b.installed("node-2", release.Node); got != "0.1.2" {
		t.Errorf("node-2 was touched: %s", got)
	}
}

func (b *bench) endVM(name string) {
	m := b.machine(name)
	m.Kill(m.VMMs()[0].Name)
}

// TestDowngrade: an older target is refused while everything runs.
// proves K7
func TestDowngrade(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1, Version: "0.1.4"})
	b.want(b.run("apply", "--debs", b.release("0.1.2"), "--yes"), exitBlocked, "newer than the target")
	if u := b.machine("ctrl-1").Unit("kibotos-ctrl.service"); u.Active != "active" {
		t.Errorf("ctrl is %s", u.Active)
	}
}

// TestAbandon: a run whose target is bad is given up, what it leaves is said, and another target can be walked.
func TestAbandon(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	b.flip("node-1", release.Node, "fail-start", "0.1.4")
	b.want(b.apply("-e", `{"kibo_timeouts": {"start": 2, "ready": 2}}`), exitStopped)
	other := b.release("0.1.5")
	b.want(b.run("apply", "--debs", other, "--yes"), exitHeld, "abandon", "nothing was changed")
	b.want(b.run("abandon", "--yes"), exitDone, "node node-1 stays drained", "kibo node cancel-drain node-1")
	for _, m := range b.fleet.Machines() {
		b.clean(m)
	}
	b.want(b.run("resume"), exitDone, "no run is unfinished")
}

// TestInstallFails: where nothing was replaced the old version serves again (K60).
// proves K60
func TestInstallFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	err := b.applyUntil(run.StepDone, "ctrl-1/ctrl/check", func() { b.machine("ctrl-1").Hold("kibotos-ctrl", true) })
	if codeOf(err) != exitStopped || !strings.Contains(err.Error(), "serves again") {
		t.Errorf("%v", err)
	}
	if u := b.machine("ctrl-1").Unit("kibotos-ctrl.service"); u.Active != "active" {
		t.Errorf("ctrl is %s", u.Active)
	}
}

// TestStoppedOnPurpose: a service that somebody stopped is replaced, and stays stopped.
func TestStoppedOnPurpose(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1, GW: 1})
	if err := b.machine("gw-1").StopUnit(t.Context(), "kibotos-gw.service"); err != nil {
		t.Fatal(err)
	}
	b.want(b.apply(), exitDone)
	if got := b.installed("gw-1", release.GW); got != "0.1.4" {
		t.Errorf("the gateway is %s", got)
	}
	if u := b.machine("gw-1").Unit("kibotos-gw.service"); u.Active != "inactive" {
		t.Errorf("the gateway is %s", u.Active)
	}
	b.want(b.apply(), exitDone, "nothing to do")
}

// TestDamagedRecord: a journal that was cut off, garbled or lost on ctrl is read from this machine, or without its bad lines.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(b *bench, file string){
		"lost":    func(b *bench, file string) { _ = b.machine("ctrl-1").FS().RemoveAll(memfs.Cred{}, file) },
		"garbled": func(b *bench, file string) { _ = b.machine("ctrl-1").Place(file, "\x00\x00\n{\"seq\":") },
		"here": func(b *bench, _ string) {
			if err := os.RemoveAll(filepath.Join(b.dir, "state")); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
			before := b.vmms()
			b.stopAfter("node-1/node/stop")
			ids := b.list(b.machine("ctrl-1"), "/var/lib/kibo-rollout/runs")
			for _, id := range ids {
				if id != "current" {
					harm(b, "/var/lib/kibo-rollout/runs/"+id+"/journal.jsonl")
				}
			}
			b.want(b.apply(), exitDone, "going on with run")
			b.onTarget("0.1.4")
			b.sameVMMs(before)
		})
	}
}

// TestManyNodes: the record of a larger fleet can be written and read again.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 60, InstancesPerNode: 1, AgentVersion: "0.1.0"})
	b.stopAfter("node-02/node/stop")
	b.want(b.apply("--serial", "10"), exitDone, "going on with run")
	b.onTarget("0.1.4")
}
