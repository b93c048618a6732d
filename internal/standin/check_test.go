package standin_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// want checks a report: a line that has to be there, the number of blockers, and the exit status that follows.
func want(t *testing.T, out string, code int, line string, blockers string) {
	t.Helper()
	status := 1
	if blockers == "0" {
		status = 0
	}
	if !strings.Contains(out, line) || !strings.HasSuffix(out, "summary: "+blockers+" blocker(s)\n") || code != status {
		t.Errorf("want %q, %s blocker(s); exit %d\n%s", line, blockers, code, out)
	}
}

// proves K21, K22, K27, K28, K29: every blocker of ctrl can be made to appear, alone and with its reason, and
// asking changes nothing
func TestCtrlCheckUpgrade(t *testing.T) {
	for _, c := range []struct {
		name, from, to, turn, line, blockers string
	}{
		{"clean", "0.1.2", "0.1.4", "", "[ok] database: schema 10", "0"},
		{"older program", "0.1.4", "0.1.2", "", "[ok] database: schema 10", "0"},
		{"migration due", "0.1.2", "0.1.7", "", "[action] database: run kibotos-ctrl migrate --config " + ctrlConfig + " after replacing files, before starting", "0"},
		{"templates later", "0.1.2", "0.1.7", "", "[after-migration] templates:", "0"},
		{"across lines", "0.1.2", "0.2.0", "", "[action] database:", "0"},
		{"newer database", "0.1.7", "0.1.4", "", "[blocker] database: schema 11 is newer than schema 10 of 0.1.4", "1"},
		{"too old for 0.2", "0.0.9", "0.2.0", "", "[blocker] database: schema 8 is older than schema 10", "1"},
		{"dirty", "0.1.2", "0.1.4", "database-dirty", "[blocker] database: migration state is dirty", "1"},
		{"newer", "0.1.2", "0.1.4", "database-newer", "[blocker] database: schema 11 is newer", "1"},
		{"older", "0.1.2", "0.1.4", "database-older", "[blocker] database: schema 7 is older", "1"},
		{"pki", "0.1.2", "0.1.4", "pki-broken", "[blocker] pki:", "1"},
		{"templates", "0.1.2", "0.1.4", "templates-broken", "[blocker] templates:", "1"},
		{"launch", "0.1.2", "0.1.4", "launch-unreadable", "[blocker] launch: Workspace w1:", "1"},
		{"unfinished", "0.1.2", "0.1.4", "unfinished 3", "[blocker] unfinished: execution switch-3", "3"},
		{"configuration", "0.1.2", "0.1.4", "config-refused", "[blocker] configuration:", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.from)
			f.must(f.ctrl, "/usr/bin/kibotos-ctrl", "standin-seed", "--workspaces", "2")
			f.startCtrl()
			f.install(f.ctrl, "/next", c.to)
			if name, value, _ := strings.Cut(c.turn, " "); name != "" {
				f.turn(f.ctrl, ctrlState, name, value)
			}
			before := f.ctrl.Snapshot()
			out, code := f.run(f.ctrl, "kibotos-ctrl", "/next/usr/bin/kibotos-ctrl", "check-upgrade", "--config", ctrlConfig)
			want(t, out, code, c.line, c.blockers)
			again, _ := f.run(f.ctrl, "kibotos-ctrl", "/next/usr/bin/kibotos-ctrl", "check-upgrade", "--config", ctrlConfig)
			if again != out || !reflect.DeepEqual(f.ctrl.Snapshot(), before) {
				t.Error("checking changed something")
			}
		})
	}
}

// proves K20, K23, K26, K43, K44, K64: every blocker of node can be made to appear; a preview takes no lock and
// writes nothing
func TestNodeCheckUpgrade(t *testing.T) {
	for _, c := range []struct {
		name, from, to, turn, line, blockers string
	}{
		{"clean", "0.1.2", "0.1.4", "", "[ok] records: 2 binding record(s) can be read", "0"},
		{"new runtime", "0.1.2", "0.1.5", "", "[ok] runtime: runtime 3 in /next/usr/lib/kibotos/node drives every Instance", "0"},
		{"no way back past a runtime", "0.1.5", "0.1.4", "", "[blocker] runtime: Instance node-a-1: runtime 3, this version drives 1 and 2", "2"},
		{"across lines", "0.1.2", "0.2.0", "", "[notice] guest: Instance node-a-1: guest lacks capabilities", "0"},
		{"too old for 0.2", "0.0.9", "0.2.0", "", "[blocker] records: cannot read binding record node-a-1.json: format 0, 0.2.0 reads 1..2", "2"},
		{"written by 0.2", "0.2.0", "0.1.4", "", "[blocker] records: cannot read binding record node-a-1.json: format 2", "2"},
		{"record", "0.1.2", "0.1.4", "record-unreadable", "[blocker] records:", "1"},
		{"guest", "0.1.2", "0.1.4", "guest-out-of-range", "[blocker] guest:", "1"},
		{"guest lacks", "0.1.2", "0.1.4", "guest-lacks", "[notice] guest:", "0"},
		{"runtime", "0.1.2", "0.1.4", "runtime-damaged", "[blocker] runtime:", "1"},
		{"runtime range", "0.1.2", "0.1.4", "runtime-out-of-range", "[blocker] runtime:", "1"},
		{"configuration", "0.1.2", "0.1.4", "config-refused", "[blocker] configuration:", "1"},
		{"new form", "0.1.2", "0.1.6", "", "[blocker] configuration: cannot use configuration " + nodeConfig + ": key pool is gone", "1"},
		{"limited to another version", "0.1.2", "0.1.4", "record-unreadable 0.1.2", "[ok] records:", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.from)
			h := f.node("node-a", c.from)
			f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "2")
			n := f.startNode(h)
			f.install(h, "/next", c.to)
			if name, value, _ := strings.Cut(c.turn, " "); name != "" {
				f.turn(h, nodeState, name, value)
			}
			before := h.Snapshot()
			args := []string{"check-upgrade", "--config", nodeConfig, "--runtime-dir", "/next/usr/lib/kibotos/node"}
			out, code := f.run(h, "root", "/next/usr/bin/kibotos-node", append(args, "--preview")...)
			want(t, out, code, c.line, c.blockers)
			if !reflect.DeepEqual(h.Snapshot(), before) {
				t.Error("the preview wrote something")
			}
			f.stopNode(h, n)
			out, code = f.run(h, "root", "/next/usr/bin/kibotos-node", args...)
			want(t, out, code, c.line, c.blockers)
		})
	}
}

// proves K20, K26: while the node runs only the preview passes, and a copy of the configuration hides the
// node's processes from the check
func TestNodeCheckOffline(t *testing.T) {
	f := newFleet(t, "0.1.4")
	h := f.node("node-a", "0.1.4")
	n := f.startNode(h)
	out, code := f.run(h, "root", "/usr/bin/kibotos-node", "check-upgrade")
	want(t, out, code, "[blocker] lock: the exclusive lock is held", "2")
	out, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-maintenance", "--operation", "upgrade")
	want(t, out, code, "[blocker] processes: kibotos-node.service is active", "2")

	if err := n.Stop(); err != nil { // the lock is free, but the unit still has a process
		t.Fatal(err)
	}
	h.SetUnit(standin.Unit{Name: release.Node.Unit(), Active: "inactive", Processes: 1})
	out, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-upgrade")
	want(t, out, code, "[blocker] processes:", "1")
	data, err := h.ReadFile(nodeConfig)
	if err != nil {
		t.Fatal(err)
	}
	f.write(h, "/etc/kibotos/node/config.next.toml", string(data))
	out, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-upgrade", "--config", "/etc/kibotos/node/config.next.toml")
	want(t, out, code, "[notice] processes:", "0")
	out, code = f.run(h, "kibo", "/usr/bin/kibotos-node", "check-upgrade", "--preview")
	want(t, out, code, "[blocker] configuration: must be run as root", "1")
}

// proves K50, K51: maintenance allows detached Volumes for an upgrade and nothing for a removal
func TestCheckMaintenance(t *testing.T) {
	f := newFleet(t, "0.1.4")
	h := f.node("node-a", "0.1.4")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "1")
	f.turn(h, nodeState, "detached-volume", "2")
	out, code := f.run(h, "root", "/usr/bin/kibotos-node", "check-maintenance", "--operation", "upgrade")
	want(t, out, code, "[ok] runtime:", "0")
	out, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-maintenance", "--operation", "remove")
	want(t, out, code, "[blocker] records: 2 detached Volume(s)", "2")
	if _, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-maintenance"); code != 2 {
		t.Errorf("without an operation: exit %d", code)
	}
}

// proves K27, K28, K33: migrate brings the schema up once, an old ctrl refuses it afterwards, and half a migration
// leaves the state dirty
func TestMigrate(t *testing.T) {
	f := newFleet(t, "0.1.4")
	running := f.startCtrl()
	f.install(f.ctrl, "", "0.1.7")
	if out, code := f.run(f.ctrl, "kibotos-ctrl", "/usr/bin/kibotos-ctrl", "migrate"); code != 1 || !strings.Contains(out, "while ctrl runs") {
		t.Errorf("migrate beside a running ctrl: exit %d, %s", code, out)
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	start := func() error {
		s, err := standin.CtrlStart(f.env(f.ctrl, "/usr/bin/kibotos-ctrl"), ctrlConfig)
		if err == nil {
			err = s.Stop()
		}
		return err
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), "run kibotos-ctrl migrate") {
		t.Errorf("start before the migration: %v", err)
	}
	f.must(f.ctrl, "/usr/bin/kibotos-ctrl", "migrate", "--config", ctrlConfig)
	if out := f.must(f.ctrl, "/usr/bin/kibotos-ctrl", "migrate"); !strings.Contains(out, "nothing to do") {
		t.Errorf("second migration: %s", out)
	}
	if err := start(); err != nil {
		t.Error(err)
	}
	f.install(f.ctrl, "", "0.1.4")
	if err := start(); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("old ctrl after the migration: %v", err)
	}
	f.install(f.ctrl, "", "0.2.0")
	f.turn(f.ctrl, ctrlState, "migrate-fails", "")
	if _, code := f.run(f.ctrl, "kibotos-ctrl", "/usr/bin/kibotos-ctrl", "migrate"); code != 1 {
		t.Errorf("failing migration: exit %d", code)
	}
	out, code := f.run(f.ctrl, "kibotos-ctrl", "/usr/bin/kibotos-ctrl", "check-upgrade")
	want(t, out, code, "[blocker] database: migration state is dirty at schema 20", "2")
}

// proves K29: real damage is found without any switch
func TestRealDamage(t *testing.T) {
	f := newFleet(t, "0.1.4")
	f.must(f.ctrl, "/usr/bin/kibotos-ctrl", "standin-seed", "--workspaces", "1")
	f.startCtrl()
	for name := range f.ctrl.Snapshot() {
		if strings.HasPrefix(name, ctrlState+"/artifacts/") || strings.HasSuffix(name, "ctrl.crt") {
			f.write(f.ctrl, name, "damaged")
		}
	}
	out, code := f.run(f.ctrl, "kibotos-ctrl", "/usr/bin/kibotos-ctrl", "check-upgrade")
	want(t, out, code, "[blocker] launch: Workspace w1: cannot verify Launch", "2")

	h := f.node("node-a", "0.1.4")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "1")
	f.write(h, standin.BindingPath(nodeState, "node-a-2"), "{")
	for name := range h.Snapshot() {
		if strings.HasPrefix(name, nodeState+"/runtimes/") && strings.HasSuffix(name, "guest.img") {
			f.write(h, name, "damaged")
		}
	}
	out, code = f.run(h, "root", "/usr/bin/kibotos-node", "check-upgrade")
	want(t, out, code, "[blocker] runtime: Instance node-a-1:", "2")
}

// proves K43: once the operator has stopped the Workspace that a report names, nothing blocks, and no other
// VMM was touched
func TestStopNamedInstance(t *testing.T) {
	f := newFleet(t, "0.1.5")
	h := f.node("node-a", "0.1.5")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "1")
	f.install(h, "", "0.1.4")
	out, code := f.run(h, "root", "/usr/bin/kibotos-node", "check-upgrade")
	want(t, out, code, "Instance node-a-1: runtime 3", "1")
	f.must(h, "/usr/bin/kibotos-node", "standin-seed", "--instances", "2")
	f.must(h, "/usr/bin/kibotos-node", "standin-stop", "--instance", "node-a-1")
	f.must(h, "/usr/bin/kibotos-node", "check-upgrade")
	if left := vmms(h); len(left) != 1 || left[0].Name != standin.VMMUnit("node-a-2") {
		t.Errorf("VMMs: %v", left)
	}
}
