package checks

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
)

const (
	stageDir  = "/var/lib/kibo-rollout/stage/0.1.4-0a1b2c3d"
	runtimeID = "r1"
)

// fleet is a healthy fleet: one host with every part, and one more node.
func fleet() Input {
	in := Input{
		Target: release.Target{Version: "0.1.4"},
		Nodes: Known([]NodeRow{
			{Name: "all", State: "READY", Release: "0.1.2"},
			{Name: "node-b", State: "READY", Release: "0.1.2"},
		}),
	}
	for _, p := range release.Parts() {
		d := release.Deb{
			Part: p, Package: p.Package(), Version: "0.1.4", Architecture: "amd64", SHA256: strings.Repeat("a", 64),
			Size: 10 << 20, Installed: 40 << 20, File: p.Package() + ".deb", Compression: "xz",
		}
		if p == release.Node {
			d.Runtime = runtimeID
		}
		in.Target.Debs = append(in.Target.Debs, d)
	}
	in.Hosts = []HostInput{healthyHost("all", 'a', release.Parts()...), healthyHost("node-b", 'b', release.Node)}
	return in
}

func healthyHost(name string, id byte, parts ...release.Part) HostInput {
	f := Facts{
		Host: name, Skew: Known(time.Duration(0)), Clock: Known(time.Unix(1796071441, 0)),
		Boot: Known(strings.Repeat(string(id), 36)), Machine: Known(strings.Repeat(string(id), 32)),
		OS: Known("Debian GNU/Linux 12 (bookworm)"), Arch: Known("amd64"), Sudo: Known(true), DpkgAudit: Known(""),
		Agent:  Known(gate.Status{Version: "1.0.0", Layers: []gate.Layer{{Name: "apt", Active: true}, {Name: "dpkg", Active: true}}}),
		Staged: Known(Staged{Dir: stageDir}), Runs: Known(""), VMMs: Known([]VMM(nil)),
		Disk: Known([]Disk{{Path: "/", Free: 10 << 30, Files: 1 << 20}}),
	}
	var pkgs []Package
	for _, p := range parts {
		pkgs = append(pkgs, Package{Name: p.Package(), Version: "0.1.2", State: "installed"})
		pf := PartFacts{Part: p, Version: Known("0.1.2"), Revision: Known("f00"), Unit: Known(Unit{
			Name: p.Unit(), Load: "loaded", Active: "active", Sub: "running", Result: "success", MainPID: 8, Processes: 1,
		})}
		if p == release.Node {
			pf.Runtime = Known(runtimeID)
		}
		f.Parts = append(f.Parts, pf)
	}
	f.Packages = Known(append(pkgs, Package{Name: "kibo-agent", Version: "1.0.0", State: "installed"}))
	return HostInput{Name: name, Parts: parts, NodeName: name, StageDir: stageDir, Gate: "managed", Facts: f}
}

func TestEvaluateHealthy(t *testing.T) {
	got := ""
	for _, f := range Evaluate(fleet()) {
		if f.Level != Pass || f.Remedy != "" {
			t.Errorf("not a plain pass: %+v", f)
		}
		got += fmt.Sprintf("%s %s %s: %s\n", f.Check, f.Host, f.Part, f.Text)
	}
	name := filepath.Join("testdata", "findings", "healthy.txtar")
	golden(t, name, orEmpty(t, name), "findings", got)
}

func orEmpty(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	if a, err := txtar.ParseFile(name); err == nil {
		return a
	}
	return &txtar.Archive{Comment: []byte("Golden: what the test prints, written with -update.\n")}
}

func unit(in *Input, i int, change func(*Unit)) {
	u, _ := in.Hosts[0].Facts.Parts[i].Unit.Get()
	change(&u)
	in.Hosts[0].Facts.Parts[i].Unit = Known(u)
}

func nodeState(in *Input, state string) {
	in.Nodes = Known([]NodeRow{{Name: "all", State: state, Release: "0.1.2"}, {Name: "node-b", State: "READY", Release: "0.1.2"}})
}

// proves K4 K5 K6 K7 K10 K32 K35 K56 K62 Z7
//
// Each case spoils one thing in a healthy fleet, and names the findings that must come of it, all others passing.
func TestEvaluate(t *testing.T) {
	bad := errors.New("exit status 1: \x1b[2Jboom")
	for _, tc := range []struct {
		name  string
		spoil func(in *Input, f *Facts) // f: of the first host
		want  string                    // "CHECK LEVEL: part of the text", several with newlines between
	}{
		{"unreachable", func(in *Input, _ *Facts) { in.Hosts[0].Err = errors.New("no route") }, "reach unknown: no route"},
		{"no sudo", func(_ *Input, f *Facts) { f.Sudo = Unknown[bool](bad) }, "sudo unknown: boom"},
		{"clock 4 s", func(_ *Input, f *Facts) { f.Skew = Known(4 * time.Second) }, ""},
		{"clock 5 s", func(_ *Input, f *Facts) { f.Skew = Known(5 * time.Second) }, "clock warn: 5s ahead of"},
		{"clock -59 s", func(_ *Input, f *Facts) { f.Skew = Known(-59 * time.Second) }, "clock warn: 59s behind"},
		{"clock -60 s", func(_ *Input, f *Facts) { f.Skew = Known(-60 * time.Second) }, "clock block: 1m0s behind"},
		{"clock unknown", func(_ *Input, f *Facts) { f.Skew = Fact[time.Duration]{} }, "clock unknown: not gathered"},
		{"dpkg half done", func(_ *Input, f *Facts) { f.DpkgAudit = Known("kibotos-node") }, "dpkg-audit block: kibotos-node"},
		{"no room", func(_ *Input, f *Facts) { f.Disk = Known([]Disk{{Path: "/", Free: 423 << 20, Files: -1}}) }, "disk block: needed are 424 MiB"},
		{"just enough room", func(_ *Input, f *Facts) { f.Disk = Known([]Disk{{Path: "/", Free: 424 << 20, Files: -1}}) }, ""},
		{"no inodes", func(_ *Input, f *Facts) { f.Disk = Known([]Disk{{Path: "/", Free: 1 << 40, Files: 1999}}) }, "disk block: 1999 free inodes"},
		{"room on two", func(_ *Input, f *Facts) {
			f.Disk = Known([]Disk{{Path: "/", Free: 224 << 20, Files: -1}, {Path: "/var", Free: 263 << 20, Files: -1}})
		}, "disk block: /var has 263 MiB free, needed are 264 MiB"},
		{"other run", func(_ *Input, f *Facts) { f.Runs = Known("20261130-1") }, "unfinished-run block: 20261130-1"},
		{"runs unknown", func(_ *Input, f *Facts) { f.Runs = Unknown[string](bad) }, "unfinished-run unknown: boom"},
		{"own run", func(in *Input, f *Facts) { f.Runs = Known("20261130-1"); in.Run = "20261130-1" }, ""},
		{"no agent", func(_ *Input, f *Facts) { f.Agent = Unknown[gate.Status](ErrNoAgent) }, "agent warn: installs it first"},
		{"no agent, gate off", func(in *Input, f *Facts) {
			in.Hosts[0].Gate = "off"
			f.Agent = Unknown[gate.Status](ErrNoAgent)
		}, "agent warn: nothing holds changes back"},
		{"agent silent", func(_ *Input, f *Facts) { f.Agent = Unknown[gate.Status](bad) }, "agent unknown: boom"},
		{"layer off", func(_ *Input, f *Facts) {
			f.Agent = Known(gate.Status{Version: "1", Layers: []gate.Layer{{Name: "apt", Active: true}, {Name: "dpkg", Reason: "no file"}}})
		}, "agent block: gate inactive: its dpkg layer"},
		{"inhibited", func(_ *Input, f *Facts) {
			s, _ := f.Agent.Get()
			s.Inhibitors = []gate.Inhibitor{
				{What: "sleep", Mode: "block", Who: "x"}, {What: "shutdown", Mode: "delay", Who: "y"},
				{What: "idle:shutdown", Mode: "block", Who: "backup", Why: "running", PID: 7},
			}
			f.Agent = Known(s)
		}, "inhibitor block: backup (process 7, user 0) holds the host: running"},
		{"staging left", func(_ *Input, f *Facts) { f.Staged = Known(Staged{Dir: stageDir, Exists: true}) }, "staging block: nothing is unpacked over it"},
		{"staging ours", func(_ *Input, f *Facts) {
			f.Staged = Known(Staged{
				Dir: stageDir, Exists: true, Marker: true, Debs: map[string]string{"x.deb": strings.Repeat("a", 64)},
				Version: map[release.Part]string{release.Node: "0.1.4"},
			})
		}, ""},
		{"staging of others", func(_ *Input, f *Facts) {
			f.Staged = Known(Staged{Dir: stageDir, Exists: true, Marker: true, Debs: map[string]string{"x.deb": "bb"}})
		}, "staging block: x.deb"},
		{"staging unknown", func(_ *Input, f *Facts) { f.Staged = Unknown[Staged](bad) }, "staging unknown: boom"},
		{"old staging", func(_ *Input, f *Facts) { f.Staged = Known(Staged{Dir: stageDir, Others: []string{"0.1.3-ff"}}) }, "staging warn: 0.1.3-ff"},
		{"wrong program", func(_ *Input, f *Facts) {
			f.Staged = Known(Staged{Dir: stageDir, Exists: true, Marker: true, Version: map[release.Part]string{release.Node: "0.1.3"}})
		}, "staged-program block: the unpacked kibotos-node is 0.1.3, not 0.1.4"},
		{"noexec", func(_ *Input, f *Facts) {
			f.Staged = Known(Staged{Dir: stageDir, Exists: true, Marker: true, Failed: map[release.Part]string{release.GW: "noexec"}})
		}, "staged-program block: noexec"},
		{"package absent", func(_ *Input, f *Facts) {
			p, _ := f.Packages.Get()
			f.Packages = Known(p[1:])
		}, "package block: kibotos-ctrl is not installed"},
		{"package half done", func(_ *Input, f *Facts) { first(f).State = "half-configured" }, "package block: half-configured"},
		{"held", func(_ *Input, f *Facts) { first(f).Held = true }, "hold block: kibotos-ctrl is held"},
		{"masked", func(in *Input, _ *Facts) { unit(in, 1, func(u *Unit) { u.Load = "masked" }) }, "unit block: masked"},
		{"failed", func(in *Input, _ *Facts) {
			unit(in, 1, func(u *Unit) { u.Active, u.Sub, u.MainPID, u.Result = "failed", "failed", 0, "exit-code" })
		}, "unit block: failed (result exit-code)"},
		{"restarting", func(in *Input, _ *Facts) {
			unit(in, 1, func(u *Unit) { u.Active, u.Sub, u.MainPID = "activating", "auto-restart", 0 })
		}, "unit block: starts over and over"},
		{"stopped", func(in *Input, _ *Facts) {
			unit(in, 1, func(u *Unit) { u.Active, u.Sub, u.MainPID = "inactive", "dead", 0 })
		}, "unit warn: is stopped"},
		{"stale", func(in *Input, _ *Facts) { unit(in, 1, func(u *Unit) { u.Stale = true }) }, "unit warn: was replaced since"},
		{"gateway overridden", func(in *Input, _ *Facts) { unit(in, 3, func(u *Unit) { u.ExecOverride = true }) }, "exec-override block: kibotos-gw"},
		{"node overridden", func(in *Input, _ *Facts) { unit(in, 1, func(u *Unit) { u.ExecOverride = true }) }, "exec-override warn: kibotos-node"},
		{"no deb for the architecture", func(_ *Input, f *Facts) { f.Arch = Known("arm64") },
			strings.Repeat("deb block: for amd64, not for the host's arm64\n", 4)},
		{"no deb for the part", func(in *Input, _ *Facts) { in.Target.Debs = in.Target.Debs[:3] }, "deb block: has no kibotos-gw"},
		{"zstd on an old dpkg", func(in *Input, f *Facts) {
			f.OS = Known("Debian GNU/Linux 11 (bullseye)")
			in.Target.Debs[0].Compression = "zst"
		}, "deb block: zstd"},
		{"program is another", func(_ *Input, f *Facts) { f.Parts[0].Version = Known("0.1.3") },
			"installed-version block: package kibotos-ctrl is 0.1.2, but /usr/bin/kibotos-ctrl says 0.1.3\nline warn: mixed"},
		{"order trap", func(in *Input, f *Facts) { first(f).Version = "1:0.1.2" }, "installed-version block: disagree on which is newer\ndowngrade block: kibotos-ctrl is 1:0.1.2, newer"},
		{"runtime changes", func(_ *Input, f *Facts) { f.Parts[1].Runtime = Known("r0") }, "runtime warn: another VM runtime"},
		{"runtime unknown", func(_ *Input, f *Facts) { f.Parts[1].Runtime = Unknown[string](bad) }, "runtime warn: take it as a change"},
		{"drained by others", func(in *Input, _ *Facts) { nodeState(in, "DRAINED") }, "node-state warn: stays drained afterwards"},
		{"not ready", func(in *Input, _ *Facts) { nodeState(in, "LOST") }, "node-state block: node all is LOST"},
		{"no list", func(in *Input, _ *Facts) { in.Nodes = Unknown[[]NodeRow](bad) }, "node-state unknown: boom"},
		{"node unknown to ctrl", func(in *Input, _ *Facts) { in.Hosts[0].NodeName = "alll" },
			"node-state block: does not know a node called alll\nnode-outside warn: all (0.1.2)"},
		{"another line", func(in *Input, _ *Facts) {
			in.Nodes = Known([]NodeRow{{Name: "all", State: "READY", Release: "0.1.2"}, {Name: "node-b", State: "READY", Release: "0.2.0"}})
		}, "line block: refuses nodes of another line"},
		{"no path", func(in *Input, f *Facts) {
			in.Hosts = in.Hosts[:1]
			in.Nodes = Known([]NodeRow{{Name: "all", State: "READY", Release: "0.2.0"}})
			p, _ := f.Packages.Get()
			for i := range f.Parts {
				f.Parts[i].Version = Known("0.2.0")
				p[i].Version = "0.2.0"
			}
		}, "path block: cannot be left downwards\ndowngrade block: kibotos-ctrl is 0.2.0\ndowngrade block: kibotos-node is 0.2.0\ndowngrade block: kibotos-e2b is 0.2.0\ndowngrade block: kibotos-gw is 0.2.0"},
		{"same machine twice", func(_ *Input, f *Facts) {
			f.Machine, f.Boot = Known(strings.Repeat("b", 32)), Known(strings.Repeat("b", 36))
		}, "machine block: all and node-b are the same machine"},
		{"cloned machine", func(_ *Input, f *Facts) { f.Machine = Known(strings.Repeat("b", 32)) }, "machine warn: share a machine id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := fleet()
			tc.spoil(&in, &in.Hosts[0].Facts)
			expect(t, Evaluate(in), strings.Split(strings.TrimSpace(tc.want), "\n"))
		})
	}
}

func first(f *Facts) *Package {
	list, _ := f.Packages.Get()
	return &list[0]
}

func expect(t *testing.T, got []Finding, want []string) {
	t.Helper()
	for _, f := range got {
		if f.Level == Pass {
			continue
		}
		if f.Remedy == "" || suspicious(f.Text) {
			t.Errorf("no remedy, or unsafe text: %+v", f)
		}
		line := fmt.Sprintf("%s %s: %s", f.Check, f.Level, f.Text)
		i := slices.IndexFunc(want, func(w string) bool {
			head, part, _ := strings.Cut(w, ": ")
			return head != "" && strings.HasPrefix(line, head+": ") && strings.Contains(line, part)
		})
		if i < 0 {
			t.Errorf("not expected: %s", line)
			continue
		}
		want = slices.Delete(slices.Clone(want), i, i+1)
	}
	if len(want) > 0 && want[0] != "" {
		t.Errorf("missing: %v", want)
	}
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table() {
		if seen[r.ID] || r.Title == "" || r.Needs == "" || r.Verdict == "" {
			t.Errorf("incomplete or double row: %+v", r)
		}
		seen[r.ID] = true
	}
	for _, f := range Evaluate(fleet()) {
		if !seen[f.Check] {
			t.Errorf("check %s is not in the table", f.Check)
		}
	}
	facts := map[string]bool{}
	for _, r := range FactTable(Want{Host: "a", Parts: release.Parts(), StageDir: stageDir}) {
		if facts[r.Fact] || r.Title == "" || len(r.Commands) == 0 {
			t.Errorf("incomplete or double row: %+v", r)
		}
		facts[r.Fact] = true
	}
}
