package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// TestFailures: each failure has its exit code, names host and reason, says what was left, and changes nothing that it
// did not say.
func TestFailures(t *testing.T) {
	t.Parallel()
	small := simfleet.Spec{Ctrl: 1, Nodes: 2}
	for _, tc := range []struct {
		name string
		spec simfleet.Spec
		harm func(b *bench)
		code int
		says []string
	}{
		{"unknown host key", small, func(b *bench) { b.forgetKeys() }, exitUnreachable, []string{"host-key", "ssh-keyscan", "nothing was changed"}},
		{"host down", small, func(b *bench) { b.fault("node-2", func(f *host.Faults) { f.Refuse = true }) },
			exitUnreachable, []string{"node-2", "unreachable", "nothing was changed"}},
		{"no sudo", simfleet.Spec{Hosts: []simfleet.HostSpec{
			{Name: "ctrl-1", Parts: []release.Part{release.Ctrl}}, {Name: "node-1", Parts: []release.Part{release.Node}, NoSudo: true},
		}}, nil, exitBlocked, []string{"node-1", "root"}},
		{"sudo wants a password", simfleet.Spec{Hosts: []simfleet.HostSpec{
			{Name: "ctrl-1", Parts: []release.Part{release.Ctrl}}, {Name: "node-1", Parts: []release.Part{release.Node}, Password: "secret"},
		}}, func(b *bench) { b.forgetPasswords() }, exitBlocked, []string{"node-1", "password"}},
		{"staging directory is there", small, func(b *bench) { b.occupy("node-1") }, exitBlocked, []string{"node-1", "/var/lib/kibo-rollout/stage/0.1.4-", "nothing is unpacked over it"}},
		{"preview blocker", small, func(b *bench) { b.flip("node-2", release.Node, "runtime-damaged", "") }, exitBlocked, []string{"node-2", "runtime"}},
		{"ctrl preview blocker", small, func(b *bench) { b.flip("ctrl-1", release.Ctrl, "database-dirty", "") }, exitBlocked, []string{"ctrl-1", "database"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.spec)
			if tc.harm != nil {
				tc.harm(b)
			}
			before := b.vmms()
			b.want(b.apply(), tc.code, tc.says...)
			b.sameVMMs(before)
			for _, m := range b.fleet.Machines() {
				for _, p := range m.Spec.Parts {
					if pkg, _ := m.Installed(p.Package()); pkg.Version != "0.1.2" {
						t.Errorf("%s: %s is %s", m.Name(), pkg.Name, pkg.Version)
					}
					if u := m.Unit(p.Unit()); u.Active != "active" {
						t.Errorf("%s: %s is %s", m.Name(), u.Name, u.Active)
					}
				}
				if _, ok := m.Installed("kibo-agent"); ok {
					t.Errorf("%s: the agent was installed before the walk was allowed", m.Name())
				}
			}
		})
	}
}

// TestWrongDebs: what a file name says does not count; each wrong file is refused before anything is connected to.
// proves K6
func TestWrongDebs(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	good := func(p release.Part) []byte {
		data, err := os.ReadFile(filepath.Join(b.debs, p.Package()+"_0.1.4_amd64.deb"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	old := b.release("0.1.2")
	older, err := os.ReadFile(filepath.Join(old, "kibotos-node_0.1.2_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		node []byte
		says string
	}{
		"truncated":     {good(release.Node)[:500], "kibotos-node_0.1.4_amd64.deb"},
		"empty":         {nil, "kibotos-node_0.1.4_amd64.deb"},
		"other package": {good(release.GW), "kibotos-node"},
		"other version": {older, "0.1.2"},
		"no deb":        {[]byte("<html>not found</html>"), "kibotos-node_0.1.4_amd64.deb"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(b.dir, "wrong-"+name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for p, data := range map[release.Part][]byte{release.Ctrl: good(release.Ctrl), release.Node: tc.node} {
				if err := os.WriteFile(filepath.Join(dir, p.Package()+"_0.1.4_amd64.deb"), data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s := b.run("apply", "--debs", dir, "--to", "0.1.4", "--yes")
			b.want(s, exitUsage, tc.says)
			for _, m := range b.fleet.Machines() {
				if n := len(b.list(m, "/var/lib/kibo-rollout/stage")); n > 0 {
					t.Errorf("%s: something was staged", m.Name())
				}
			}
		})
	}
}

// TestNodeDoesNotComeBack: the walk stops, the node stays drained and alone, the next plan shows the mixed line.
// proves K4
// proves K31
func TestNodeDoesNotComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 3})
	b.flip("node-2", release.Node, "fail-start", "0.1.4")
	before := b.vmms()
	s := b.apply("-e", `{"kibo_timeouts": {"start": 2, "ready": 2}}`)
	b.want(s, exitStopped, "node-2", "stays drained", "kibo-rollout resume")
	b.sameVMMs(before)
	if pkg, _ := b.machine("node-3").Installed("kibotos-node"); pkg.Version != "0.1.2" {
		t.Errorf("node-3 was touched: %s", pkg.Version)
	}
	st := b.run("status")
	b.want(st, exitDone, "mixed, on one release line", "did not end")
	for _, m := range b.fleet.Machines() {
		if v, _ := m.Gate(); v.Open {
			t.Errorf("%s: a window is open", m.Name())
		}
	}
	b.want(b.run("plan", "--debs", b.debs), exitDone, "node-3")

	b.flip("node-2", release.Node, "fail-start", "9.9.9") // mended
	b.want(b.apply(), exitDone, "going on with run", "every VMM is the same process")
	b.onTarget("0.1.4")
	b.sameVMMs(before)
}

// TestAdoptionFails: a node that is back at ctrl with fewer Instances than it had is not back.
// proves K31
func TestAdoptionFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	b.flip("node-1", release.Node, "fail-adopt", "0.1.4")
	b.want(b.apply("-e", `{"kibo_timeouts": {"ready": 2}}`), exitStopped, "node-1", "stays drained")
	if pkg, _ := b.machine("node-2").Installed("kibotos-node"); pkg.Version != "0.1.2" {
		t.Errorf("node-2 was touched: %s", pkg.Version)
	}
}

// TestOfflineCheckFails: what the preview could not see stops the node's replacement, and the old version serves again.
// proves K60
// proves K23
func TestOfflineCheckFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
	b.flip("node-1", release.Node, "processes-left", "")
	before := b.vmms()
	s := b.apply()
	b.want(s, exitBlocked, "node-1", "the installed version serves again")
	b.sameVMMs(before)
	m := b.machine("node-1")
	if pkg, _ := m.Installed("kibotos-node"); pkg.Version != "0.1.2" {
		t.Errorf("node-1 is %s", pkg.Version)
	}
	if u := m.Unit("kibotos-node.service"); u.Active != "active" {
		t.Errorf("node-1 is %s", u.Active)
	}
	if st := b.run("status"); strings.Contains(st.out, "DRAIN") {
		t.Errorf("the drain was not given back:\n%s", st.out)
	}
	for _, m := range b.fleet.Machines() {
		b.clean(m)
	}
}

// TestClosedGate: where somebody else opens the windows and did not, nothing is started.
// proves Z5
// proves Z8
func TestClosedGate(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1, AgentVersion: "0.1.0"})
	b.want(b.apply("-e", "kibo_gate=external"), exitGate, "the gate of ctrl-1 says no", "nothing was started")
	if u := b.machine("ctrl-1").Unit("kibotos-ctrl.service"); u.Active != "active" {
		t.Errorf("ctrl is %s", u.Active)
	}
}

// fault changes what is wrong with a machine.
func (b *bench) fault(name string, change func(f *host.Faults)) {
	b.t.Helper()
	if err := b.machine(name).SetFaults(change); err != nil {
		b.t.Fatal(err)
	}
}

// forgetKeys empties known_hosts.
func (b *bench) forgetKeys() {
	if err := os.WriteFile(b.inv.KnownHosts, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// forgetPasswords takes the sudo passwords out of the inventory.
func (b *bench) forgetPasswords() {
	data, err := os.ReadFile(b.inv.File)
	if err != nil {
		b.t.Fatal(err)
	}
	var keep []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, "ansible_become_password") {
			keep = append(keep, line)
		}
	}
	if err := os.WriteFile(b.inv.File, []byte(strings.Join(keep, "")), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// occupy puts something where the target is going to be staged.
func (b *bench) occupy(name string) {
	debs, err := release.ReadDebs(b.debs)
	if err != nil {
		b.t.Fatal(err)
	}
	target, err := release.NewTarget("0.1.4", debs)
	if err != nil {
		b.t.Fatal(err)
	}
	dir := "/var/lib/kibo-rollout/stage/" + target.StageName()
	if err := b.machine(name).FS().MkdirAll(memfs.Cred{}, dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// TestCtrlFirst: neither a node nor a gateway goes before ctrl; after it, a selection of one host is enough.
// proves K34
// proves K56
func TestCtrlFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2, GW: 1})
	b.want(b.apply("-l", "gw-1"), exitBlocked, "ctrl on ctrl-1 is 0.1.2, older than the target")
	b.want(b.apply("-l", "node-1"), exitBlocked, "it goes first")
	b.want(b.apply("-l", "ctrl-1"), exitDone)
	b.want(b.apply("-l", "node-1"), exitDone)
	if got := b.installed("node-2", release.Node); got != "0.1.2" {
		t.Errorf("node-2 is %s", got)
	}
	b.want(b.apply("-l", "gw-1"), exitDone)
	b.want(b.apply(), exitDone)
	b.onTarget("0.1.4")
}
