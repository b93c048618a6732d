package standin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/memenv"
)

func vmms(h *memenv.Host) []standin.Unit {
	var all []standin.Unit
	for _, u := range h.Units() {
		if strings.HasPrefix(u.Name, "kibotos-vmm-") {
			all = append(all, u)
		}
	}
	return all
}

// proves K4, K34, K35, K41, K50: a rolling upgrade of ctrl and a node leaves every VMM as it is
func TestRollingUpgrade(t *testing.T) {
	f := newFleet(t, "0.1.2")
	ctrl := f.startCtrl()
	f.must(f.ctrl, "/usr/bin/kibotos-ctrl", "standin-seed", "--workspaces", "2")
	h := f.node("node-a", "0.1.2")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "3")
	n := f.startNode(h)
	before := vmms(h)
	if len(before) != 3 {
		t.Fatalf("VMMs: %v", before)
	}
	f.wantState("node-a", "READY 0.1.2 3 0 0")

	f.install(f.ctrl, "/next", "0.1.4")
	f.must(f.ctrl, "/next/usr/bin/kibotos-ctrl", "check-upgrade")
	if err := ctrl.Stop(); err != nil {
		t.Fatal(err)
	}
	f.install(f.ctrl, "", "0.1.4")
	f.startCtrl()
	f.wantState("node-a", "NOT-READY 0.1.2 0 0 0")
	if err := n.Report(); err != nil {
		t.Fatal(err)
	}
	f.wantState("node-a", "READY 0.1.2 3 0 0")

	f.must(f.ctrl, "/usr/bin/kibo", "node", "drain", "node-a")
	f.turn(h, nodeState, "detached-volume", "")
	if err := n.Report(); err != nil {
		t.Fatal(err)
	}
	f.wantState("node-a", "DRAINING 0.1.2 3 0 0")
	f.stopNode(h, n)
	f.wantState("node-a", "NOT-READY 0.1.2 0 0 0")
	f.install(h, "/next", "0.1.4")
	f.must(h, "/next/usr/bin/kibotos-node", "check-upgrade", "--config", nodeConfig, "--runtime-dir", "/next/usr/lib/kibotos/node")
	f.install(h, "", "0.1.4")
	f.must(h, "/usr/bin/kibotos-node", "check-maintenance", "--operation", "upgrade")
	n = f.startNode(h)
	f.wantState("node-a", "DRAINING 0.1.4 3 0 0")
	f.must(f.ctrl, "/usr/bin/kibo", "node", "cancel-drain", "node-a")
	f.wantState("node-a", "READY 0.1.4 3 0 0")
	if after := vmms(h); !reflect.DeepEqual(after, before) {
		t.Errorf("VMMs changed: %v, before %v", after, before)
	}
	f.clock.pass(standin.SilenceLimit + 1)
	f.wantState("node-a", "NOT-READY 0.1.4 0 0 0")
	f.stopNode(h, n)
}

// proves K42: detached Volumes keep a node in DRAINING, nothing else does
func TestDrained(t *testing.T) {
	f := newFleet(t, "0.1.4")
	f.startCtrl()
	h := f.node("node-a", "0.1.4")
	n := f.startNode(h)
	f.must(f.ctrl, "/usr/bin/kibo", "node", "drain", "node-a")
	f.wantState("node-a", "DRAINED 0.1.4 0 0 0")
	f.turn(h, nodeState, "command-running", "2 until 1700000060")
	f.turn(h, nodeState, "transfer-running", "")
	report(t, n)
	f.wantState("node-a", "DRAINING 0.1.4 0 2 1")
	f.clock.pass(60e9)
	report(t, n)
	f.wantState("node-a", "DRAINING 0.1.4 0 0 1")
	if out, code := f.run(f.ctrl, "root", "/usr/bin/kibo", "node", "drain", "node-b"); code != 1 || !strings.Contains(out, `no node "node-b"`) {
		t.Errorf("drain of an unknown node: exit %d, %s", code, out)
	}
}

func report(t *testing.T, n *standin.Node) {
	t.Helper()
	if err := n.Report(); err != nil {
		t.Fatal(err)
	}
}

// proves K1, K2, K3, K4
func TestAccepts(t *testing.T) {
	get := func(key string) standin.Release {
		parts, ok := standin.Find(key)
		if !ok {
			t.Fatalf("no version %s", key)
		}
		return parts[0]
	}
	for _, c := range []struct {
		ctrl, node string
		want       bool
	}{
		{"0.1.2", "0.1.4", true}, {"0.1.4", "0.1.2", true},
		{"0.2.0-rc.1", "0.2.0", true}, {"0.2.0", "0.1.4", false},
		{"0.0.9", "0.0.9", true}, {"0.0.9", "0.1.2", false},
		{"0.3.0-alpha.1", "0.3.0-alpha.1", true}, {"0.3.0-alpha.1", "0.3.0-alpha.1-second", false},
	} {
		if err := standin.Accepts(get(c.ctrl), get(c.node)); (err == nil) != c.want {
			t.Errorf("ctrl %s, node %s: %v", c.ctrl, c.node, err)
		}
	}
}

// proves K4: a node of another line is refused and shown so
func TestRefusedNode(t *testing.T) {
	f := newFleet(t, "0.1.4")
	f.startCtrl()
	n := f.startNode(f.node("node-x", "0.2.0"))
	if err := n.Report(); err == nil || !strings.Contains(err.Error(), "line 0.2") {
		t.Errorf("report of a refused node: %v", err)
	}
	f.wantState("node-x", "NOT-READY - 0 0 0")
	if out := f.must(f.ctrl, "/usr/bin/kibo", "node", "list", "--output", "json"); !strings.Contains(out, "cannot accept node 0.2.0") {
		t.Errorf("no reason in %s", out)
	}
}

// proves K31: an Instance that cannot be adopted is marked, its VMM runs on; the old version takes it over again
func TestFailsToAdopt(t *testing.T) {
	f := newFleet(t, "0.1.4")
	f.startCtrl()
	h := f.node("node-a", "0.1.4")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "2")
	before := vmms(h)
	f.turn(h, nodeState, "fail-adopt", "0.1.4")
	n := f.startNode(h)
	f.wantState("node-a", "READY 0.1.4 0 0 0")
	f.stopNode(h, n)
	f.install(h, "", "0.1.2")
	f.startNode(h)
	f.wantState("node-a", "READY 0.1.2 2 0 0")
	if after := vmms(h); !reflect.DeepEqual(after, before) {
		t.Errorf("VMMs changed: %v, before %v", after, before)
	}
}

// proves K31: the version that fails to start leaves lock, records and VMMs as they were
func TestFailsToStart(t *testing.T) {
	f := newFleet(t, "0.1.4")
	h := f.node("node-a", "0.1.8")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "1")
	before := h.Snapshot()
	if _, err := standin.NodeStart(f.env(h, "/usr/bin/kibotos-node"), nodeConfig); err == nil {
		t.Fatal("0.1.8 started")
	}
	if !reflect.DeepEqual(h.Snapshot(), before) {
		t.Error("files changed")
	}
	f.install(h, "", "0.1.4")
	f.startNode(h)
}

// proves K34, K47: data-plane processes outlive a stop and a same-line replacement, not one of another line
func TestDataPlane(t *testing.T) {
	f := newFleet(t, "0.1.4")
	h := f.node("node-a", "0.1.2")
	planes := func() []standin.DataPlane {
		all, err := standin.DataPlanes(f.env(h, "/usr/bin/kibotos-node"), nodeState)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	f.stopNode(h, f.startNode(h))
	old := planes()[0]
	f.write(h, standin.DataPlaneConnections(nodeState, old.Unit), "1\n")
	f.install(h, "", "0.1.4")
	n := f.startNode(h)
	if got := planes(); len(got) != 2 {
		t.Fatalf("after a replacement on the line: %v", got)
	}
	f.write(h, standin.DataPlaneConnections(nodeState, old.Unit), "0\n")
	_ = n.Report()
	if got := planes(); len(got) != 1 || got[0].Version != "0.1.4" {
		t.Fatalf("after the last connection: %v", got)
	}
	f.write(h, standin.DataPlaneConnections(nodeState, planes()[0].Unit), "1\n")
	f.stopNode(h, n)
	f.install(h, "", "0.2.0")
	f.startNode(h)
	if got := planes(); len(got) != 1 || got[0].Version != "0.2.0" {
		t.Errorf("after a replacement across lines: %v", got)
	}
}

// proves K34: new data-plane connections to a stopped node are possible, unless ctrl restarted meanwhile
func TestSessions(t *testing.T) {
	f := newFleet(t, "0.1.4")
	ctrl := f.startCtrl()
	h := f.node("node-a", "0.1.4")
	n := f.startNode(h)
	session := func() bool {
		_, code := f.run(f.ctrl, "kibo", "/usr/bin/kibo", "standin-session", "node-a")
		return code == 0
	}
	if !session() {
		t.Error("no session while the node runs")
	}
	f.stopNode(h, n)
	if !session() {
		t.Error("no session while the node is stopped")
	}
	if err := ctrl.Stop(); err != nil {
		t.Fatal(err)
	}
	f.startCtrl()
	if session() {
		t.Error("a session after ctrl restarted while the node was stopped")
	}
	f.startNode(h)
	if !session() {
		t.Error("no session after the node came back")
	}
}
