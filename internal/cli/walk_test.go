package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
)

// TestRolling walks the rolling table to its end: ctrl, nodes, gateways; the agent is installed on the way; VMs go on.
// proves K11 K34 K41
func TestRolling(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2, E2B: 1, GW: 1})
	before := b.vmms()
	if len(before) != 4 {
		t.Fatalf("%d VMs to begin with", len(before))
	}
	b.want(b.apply(), exitDone, "every VMM is the same process: 4 of 4")
	b.onTarget("0.1.4")
	b.sameVMMs(before)
	b.want(b.apply(), exitDone, "nothing to do: every host is on 0.1.4")
	for _, m := range b.fleet.Machines() {
		if n := b.jobs(m, "install"); n != 1 {
			t.Errorf("%s: %d installs", m.Name(), n)
		}
	}
}

// TestPlanIsOneDocument: standard output carries the plan and nothing else; nothing but staging is touched.
func TestPlanIsOneDocument(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.run("plan", "--debs", b.debs, "--output", "json")
	b.want(s, exitDone)
	var doc struct {
		ID     string
		Blocks []any
	}
	dec := json.NewDecoder(strings.NewReader(s.out))
	if err := dec.Decode(&doc); err != nil || dec.More() || doc.ID == "" || len(doc.Blocks) == 0 {
		t.Errorf("not one plan: %v\n%s", err, s.out)
	}
	for _, m := range b.fleet.Machines() {
		if pkg, ok := m.Installed("kibo-agent"); ok {
			t.Errorf("%s: plan installed %s", m.Name(), pkg.Name)
		}
	}
	b.want(b.run("plan", "--debs", b.debs, "--detailed-exitcode"), exitChanges)
	file := b.write("plan.json", s.out)
	b.want(b.apply(file), exitDone)
	b.onTarget("0.1.4")
}

// TestStalePlan: a plan whose ground has moved is refused with the difference, and nothing is changed.
func TestStalePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.run("plan", "--debs", b.debs, "--output", "json")
	b.want(s, exitDone)
	stale := strings.ReplaceAll(s.out, `"version": "0.1.2"`, `"version": "0.1.1"`)
	b.want(b.apply(b.write("plan.json", stale)), exitStale, "is 0.1.2 now", "nothing was changed")
}

// TestSomebodyElsesDrain: what this run did not drain it does not give back, and says so (K35).
// proves K35
func TestSomebodyElsesDrain(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	if _, err := b.machine("ctrl-1").Run(t.Context(), "root", "kibo", "node", "drain", "node-1"); err != nil {
		t.Fatal(err)
	}
	b.want(b.apply(), exitDone, "this run took no drain of node-1")
	st := b.run("status")
	for line := range strings.Lines(st.out) {
		if strings.HasPrefix(strings.TrimSpace(line), "node-1") && strings.Contains(line, "0.1.4") && !strings.Contains(line, "DRAIN") {
			t.Errorf("the drain of somebody else was cancelled: %s", line)
		}
	}
}

// TestCheckMode prints commands and touches nothing.
func TestCheckMode(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	b.want(b.apply("--check"), exitDone, "kibo node drain node-1", "apt-get install")
	for _, m := range b.fleet.Machines() {
		for _, p := range m.Spec.Parts {
			if pkg, _ := m.Installed(p.Package()); pkg.Version != "0.1.2" {
				t.Errorf("%s: %s is %s", m.Name(), pkg.Name, pkg.Version)
			}
		}
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	b.want(b.run("apply", "--debs", b.debs), exitUsage, "no terminal", "--yes")
}

// TestWaitsForCommands: a node with a running lifecycle command or Transfer is drained, and not stopped before it ends.
// proves K22
func TestWaitsForCommands(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	b.flip("node-1", release.Node, "command-running", "1")
	b.want(b.apply("-e", `{"kibo_timeouts": {"settle": 2}}`), exitStopped, "node-1", "running commands", "nothing was stopped")
	if u := b.machine("node-1").Unit("kibotos-node.service"); u.Active != "active" {
		t.Errorf("node-1 is %s", u.Active)
	}
	if pkg, _ := b.machine("node-2").Installed("kibotos-node"); pkg.Version != "0.1.2" {
		t.Errorf("node-2 was touched: %s", pkg.Version)
	}
	b.flip("node-1", release.Node, "command-running", "0")
	b.want(b.apply(), exitDone, "going on with run")
	b.onTarget("0.1.4")
}

// TestMigration: the database is migrated between replacing the files and starting, and the plan says what that means.
// proves K27
func TestMigration(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	debs := b.release("0.1.7")
	if _, err := b.fleet.WriteAgentDeb(debs, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	b.want(b.run("apply", "--debs", debs, "--yes"), exitDone, "is migrated", "migrate the database")
	b.onTarget("0.1.7")
}

// TestOtherLine: what needs a stop of everything is refused before anything is touched.
// proves K3
func TestOtherLine(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	b.want(b.run("apply", "--debs", b.release("0.2.0"), "--yes"), exitBlocked, "nothing was changed")
}
