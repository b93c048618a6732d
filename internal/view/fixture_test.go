package view

import (
	"errors"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/run"
)

// The fleet of these tests: ctrl1, node-a, a node with a wide name that is ctrl's node-b too, and gw1.

const sum = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func debOf(p release.Part) release.Deb {
	return release.Deb{
		Part: p, Package: p.Package(), Version: "0.1.4", Architecture: "amd64", SHA256: sum, Size: 12_345_678,
		File: p.Package() + "_0.1.4_amd64.deb",
	}
}

func target() release.Target {
	return release.Target{Version: "0.1.4", Debs: []release.Deb{debOf(release.Ctrl), debOf(release.Node)}}
}

func hostOf(name, address string, vmms int, version string, parts ...release.Part) plan.Host {
	h := plan.Host{Name: name, Address: address, Parts: parts, NodeName: name, VMMs: vmms, StageDir: "/var/lib/kibo-rollout/stage"}
	for _, p := range parts {
		h.Versions = append(h.Versions, plan.PartVersion{Part: p, Version: version})
	}
	return h
}

func nothingPlan() plan.Plan {
	return plan.Plan{
		ID: "20261130-120000-7f3a", Mode: plan.Rolling, Why: "0.1.4 is on the release line of every part", Target: target(),
		Hosts: []plan.Host{hostOf("ctrl1", "10.0.0.1", 0, "0.1.4", release.Ctrl)},
	}
}

func rollingPlan() plan.Plan {
	p := plan.Plan{
		Schema: 1, ID: "20261130-120000-7f3a", Mode: plan.Rolling, Why: "0.1.2 and 0.1.4 are on one release line, 0.1 (K1)",
		Target: target(),
		Hosts: []plan.Host{
			hostOf("ctrl1", "10.0.0.1", 0, "0.1.2", release.Ctrl, release.E2B),
			hostOf("node-a", "10.0.0.2", 12, "0.1.2", release.Node),
			hostOf("节点二", "2001:db8::13", 3, "", release.Node),
			hostOf("gw1", "10.0.0.4", 0, "0.1.2", release.GW),
		},
		Notes: []string{
			"the target brings another VM runtime: publish the Platform only after every node is replaced; a node cannot go back (K32)",
			"node 节点二 was drained by somebody else and stays drained",
		},
		Findings: []checks.Finding{
			{Check: "sudo", Host: "ctrl1", Level: checks.Pass, Text: "commands run as root"},
			{Check: "sudo", Host: "node-a", Level: checks.Pass, Text: "commands run as root"},
			{Check: "deb-arch", Host: "node-a", Level: checks.Block, Text: "the package is for arm64, the host is amd64",
				Remedy: "put the amd64 package into the directory given with --debs"},
			{Check: "deb-arch", Host: "节点二", Level: checks.Block, Text: "the package is for arm64, the host is amd64",
				Remedy: "put the amd64 package into the directory given with --debs"},
			{Check: "disk", Host: "gw1", Level: checks.UnknownFact, Text: "free space is not known: \x1b[2J df: not found"},
			{Check: "agent", Host: "node-a", Level: checks.Warn, Text: "kibo-agent is not installed", Remedy: "kibo-rollout agent install -l node-a"},
			{Check: "agent", Host: "gw1", Level: checks.Warn, Text: "kibo-agent is not installed", Remedy: "kibo-rollout agent install -l gw1"},
			{Check: "sudo", Host: "ctrl1", Level: checks.Block, Text: "no sudo", Remedy: "ssh ctrl1 sudo -l"},
			{Check: "sudo", Host: "gw1", Level: checks.Block, Text: "no sudo", Remedy: "ssh gw1 sudo -l"},
			{Check: "clock", Host: "gw1", Level: checks.Warn, Text: "its clock is 40s behind"},
		},
	}
	p.Hosts[2].NodeName = "node-b"
	p.Blocks = []plan.Block{ctrlBlock(), nodeBlock("node-a", 2), nodeBlock("节点二", 3)}
	p.Clean = []plan.Block{cleanBlock("ctrl1"), cleanBlock("node-a"), cleanBlock("节点二")}
	return p
}

func ctrlBlock() plan.Block {
	return plan.Block{
		ID: "ctrl1/ctrl", Title: "upgrade ctrl on ctrl1", Host: "ctrl1", Wave: 1,
		Steps: []plan.Step{
			{ID: "ctrl1/ctrl/stop", Title: "stop ctrl", Host: "ctrl1", Effect: command.Disrupts, Limit: 5 * time.Minute, Rule: "K22 K23"},
			{
				ID: "ctrl1/ctrl/upload", Title: "stage the target's packages", Host: "ctrl1", Effect: command.Stages,
				Act: []plan.Action{{Verb: plan.Upload, Host: "ctrl1", Deb: new(debOf(release.Ctrl)), Path: ".kibo/kibotos-ctrl_0.1.4_amd64.deb"}},
			},
		},
		Stuck: "ctrl stays stopped; nodes and their VMs go on",
	}
}

func nodeBlock(host string, wave int) plan.Block {
	id := host + "/node"
	return plan.Block{
		ID: id, Title: "upgrade node " + host, Host: host, Wave: wave,
		Steps: []plan.Step{
			{
				ID: id + "/drain", Title: "drain the node", Host: host, Effect: command.Changes, Limit: time.Minute, Rule: "K35 K42",
				Act: []plan.Action{{
					Verb: plan.Exec, Host: "ctrl1", Record: plan.RecordDrain,
					Command: command.Command{Argv: []string{"kibo", "node", "drain", host}, Effect: command.Changes},
				}},
				Done: &plan.Cond{Kind: plan.CondNodeState, Node: host, Value: "DRAINING|DRAINED"},
			},
			{
				ID: id + "/install", Title: "install kibotos-node 0.1.4", Host: host, Effect: command.Changes, Limit: 15 * time.Minute, Rule: "K11",
				Act: []plan.Action{{
					Verb: plan.Job, Host: host,
					Command: command.Command{Argv: []string{"apt-get", "install", "-y", "/stage/kibotos-node_0.1.4_amd64.deb"}, As: command.Root},
					Job:     &plan.JobSpec{Step: id + "/install", Operation: gate.OpInstall, Packages: map[string]string{"kibotos-node": "0.1.4"}, SHA256: []string{sum}},
				}},
				Done: &plan.Cond{Kind: plan.CondAll, Of: []plan.Cond{
					{Kind: plan.CondPackage, Host: host, Package: "kibotos-node", Value: "0.1.4"},
					{Kind: plan.CondRunning, Host: host, Part: release.Node},
				}},
			},
		},
		Finally: []plan.Step{{ID: id + "/close", Title: "close the gate", Host: host, Effect: command.Changes, Rule: "Z4"}},
		Stuck:   host + " stays drained and alone (K31); the other nodes were not touched",
	}
}

func cleanBlock(host string) plan.Block {
	return plan.Block{ID: host + "/clean", Title: "clean up " + host, Host: host, Wave: 10, Steps: []plan.Step{{
		ID: host + "/clean", Title: "remove the staging directory", Host: host, Effect: command.Stages, Rule: "K11",
		Act:  []plan.Action{{Verb: plan.Exec, Host: host, Command: command.Command{Argv: []string{"rm", "-rf", "--", "/stage"}, As: command.Root}}},
		Back: []plan.Step{{ID: host + "/back", Title: "start the installed version", Host: host, Effect: command.Disrupts}},
	}}}
}

// noon is when everything in these tests happens.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func partFacts(p release.Part, version, active string) checks.PartFacts {
	u := checks.Unit{Name: p.Unit(), Load: "loaded", Active: active, Sub: "running", Result: "success", MainPID: 4711, Processes: 1}
	if active != "active" {
		u.MainPID, u.Processes, u.Result = 0, 0, "exit-code"
	}
	return checks.PartFacts{Part: p, Version: checks.Known(version), Unit: checks.Known(u)}
}

func mixedStatus() Status {
	closed := gate.Status{Version: "0.1.0", Code: "missing", Reason: "there is no allow-file", Layers: []gate.Layer{{Name: "apt", Active: true}}}
	open := gate.Status{
		Version: "0.1.0", Open: true, Layers: []gate.Layer{{Name: "apt", Active: true}, {Name: "dpkg"}},
		Window:     &gate.AllowFile{NotAfter: noon().Add(14 * time.Minute).Unix(), Operations: []string{"stop", "install"}, IssuedBy: "ops@laptop"},
		Inhibitors: []gate.Inhibitor{{What: "shutdown", Who: "backup\x1b[2J", Why: "a backup runs", Mode: "block"}},
		Jobs:       []gate.Job{{Key: "run.node-b.01", State: gate.JobRunning}, {Key: "old", State: gate.JobFinished}},
	}
	ctrl := partFacts(release.Ctrl, "0.1.4", "active")
	stale := partFacts(release.GW, "0.2.0", "active")
	u, _ := stale.Unit.Get()
	u.Stale, u.ExecOverride = true, true
	stale.Unit = checks.Known(u)
	st := NewStatus([]Machine{
		{Name: "ctrl1", Address: "10.0.0.1", Parts: []release.Part{release.Ctrl}, Facts: checks.Facts{
			Clock: checks.Known(noon()), Parts: []checks.PartFacts{ctrl}, Agent: checks.Known(closed), Runs: checks.Known("20261130-120000-7f3a"),
		}},
		{Name: "node-a", Address: "10.0.0.2", NodeName: "node-a", Parts: []release.Part{release.Node}, Facts: checks.Facts{
			Clock: checks.Known(noon()), Parts: []checks.PartFacts{partFacts(release.Node, "0.1.4", "active")}, Agent: checks.Known(open),
			VMMs: checks.Known([]checks.VMM{{Unit: "kibotos-vmm-1.service", PID: 11, Start: "1"}, {Unit: "kibotos-vmm-2.service", PID: 12, Start: "2"}}),
		}},
		{Name: "节点二", Address: "2001:db8::13", NodeName: "node-b", Parts: []release.Part{release.Node}, Facts: checks.Facts{
			Parts: []checks.PartFacts{partFacts(release.Node, "0.1.2", "failed")}, Agent: checks.Unknown[gate.Status](checks.ErrNoAgent),
			VMMs: checks.Unknown[[]checks.VMM](errors.New("systemctl: exit 1")), DpkgAudit: checks.Known("half-installed: kibotos-node\nmore"),
		}},
		{Name: "gw1", Parts: []release.Part{release.GW}, Facts: checks.Facts{
			Parts: []checks.PartFacts{stale}, Agent: checks.Unknown[gate.Status](errors.New("not JSON")), Sudo: checks.Known(false),
		}},
		{Name: "gw2", Parts: []release.Part{release.GW}, Facts: checks.Facts{
			Parts: []checks.PartFacts{partFacts(release.GW, "0.1.4", "active")}, Agent: checks.Known(closed),
		}},
		{Name: "node-c", Parts: []release.Part{release.Node}, Err: errors.New("host node-c: unreachable: no route to host")},
	}, checks.Known([]checks.NodeRow{
		{Name: "node-a", State: "READY", Release: "0.1.4", Instances: 2}, {Name: "node-b", State: "DRAINING", Release: "0.1.2", Instances: -1},
		{Name: "node-x", State: "DRAINED", Release: "0.1.2"},
	}))
	st.Runs[0].Next = "kibo-rollout resume -i inventory.yml --debs ./debs"
	return st
}

// observe draws a walk.
func observe(s Screen, events []run.Event) error {
	v := s.Events()
	at := noon()
	for i, e := range events {
		at = at.Add(1500 * time.Millisecond)
		e.Seq, e.Time, e.Run = i+1, at, "20261130-120000-7f3a"
		v.Observe(e)
	}
	return nil
}

// step is the events of one step that is done.
func step(block, id, host string) []run.Event {
	return []run.Event{
		{Kind: run.StepStarted, Block: block, Step: id, Host: host},
		{Kind: run.Command, Block: block, Step: id, Host: host, Text: "sudo -n -- true"},
		{Kind: run.StepDone, Block: block, Step: id, Host: host, Text: "seen on the host", Took: 3200 * time.Millisecond},
	}
}

func wholeWalk() []run.Event {
	p := rollingPlan()
	out := []run.Event{{Kind: run.RunStarted, Plan: &p}, {Kind: run.BlockStarted, Block: "ctrl1/ctrl", Host: "ctrl1"}}
	out = append(out, step("ctrl1/ctrl", "ctrl1/ctrl/stop", "ctrl1")...)
	out = append(out,
		run.Event{Kind: run.StepStarted, Block: "ctrl1/ctrl", Step: "ctrl1/ctrl/upload", Host: "ctrl1"},
		run.Event{Kind: run.Progress, Step: "ctrl1/ctrl/upload", Host: "ctrl1", Text: "kibotos-ctrl_0.1.4_amd64.deb", Sent: 1000, Size: 12_345_678},
		run.Event{Kind: run.Progress, Step: "ctrl1/ctrl/upload", Host: "ctrl1", Text: "kibotos-ctrl_0.1.4_amd64.deb", Sent: 12_345_678, Size: 12_345_678},
		run.Event{Kind: run.StepDone, Block: "ctrl1/ctrl", Step: "ctrl1/ctrl/upload", Host: "ctrl1", Took: 75 * time.Second},
		run.Event{Kind: run.BlockDone, Block: "ctrl1/ctrl", Host: "ctrl1"},
		run.Event{Kind: run.BlockStarted, Block: "node-a/node", Host: "node-a"},
		run.Event{Kind: run.Continuity, Host: "node-a", Text: "noted", VMMs: []run.VMMProof{{Unit: "kibotos-vmm-1.service", Before: "pid 11 since 1"}}},
		run.Event{Kind: run.Taken, Host: "ctrl1", Record: plan.RecordDrain, Text: "node-a"})
	out = append(out, step("node-a/node", "node-a/node/drain", "node-a")...)
	out = append(out,
		run.Event{Kind: run.StepSkipped, Block: "node-a/node", Step: "node-a/node/install", Host: "node-a", Text: "kibotos-node is 0.1.4"},
		run.Event{Kind: run.GivenBack, Host: "node-a", Record: plan.RecordDrain, Text: "node-a"},
		run.Event{Kind: run.Continuity, Host: "node-a", VMMs: []run.VMMProof{
			{Unit: "kibotos-vmm-1.service", Before: "pid 11 since 1", After: "pid 11 since 1", Same: true},
			{Unit: "kibotos-vmm-2.service", Before: "pid 12 since 2", After: "pid 12 since 2", Same: true},
		}},
		run.Event{Kind: run.BlockDone, Block: "node-a/node", Host: "node-a"},
		run.Event{Kind: run.BlockSkipped, Block: "节点二/node", Host: "节点二", Text: "kibotos-node is 0.1.4, node-b is READY"},
		run.Event{Kind: run.RunDone, Text: "every host is on 0.1.4"})
	return out
}

func stoppedWalk() []run.Event {
	p := rollingPlan()
	return []run.Event{
		{Kind: run.RunResumed, Plan: &p},
		{Kind: run.BlockSkipped, Block: "ctrl1/ctrl", Host: "ctrl1", Text: "kibotos-ctrl is 0.1.4"},
		{Kind: run.BlockStarted, Block: "node-a/node", Host: "node-a"},
		{Kind: run.Taken, Host: "node-a", Record: plan.RecordDrain, Text: "node-a"},
		{Kind: run.Taken, Host: "node-a", Record: "lease", Text: "node-a"},
		{Kind: run.StepStarted, Block: "node-a/node", Step: "node-a/node/install", Host: "node-a"},
		{
			Kind: run.StepFailed, Block: "node-a/node", Step: "node-a/node/install", Host: "node-a",
			Text: "apt-get ended with 100\nE: \x1b]0;pwned\x07 broken", Next: "kibo-rollout status -l node-a",
		},
		{Kind: run.Continuity, Host: "node-a", VMMs: []run.VMMProof{
			{Unit: "kibotos-vmm-1.service", Before: "pid 11 since 1", After: "pid 99 since 7"},
			{Unit: "kibotos-vmm-2.service", Before: "pid 12 since 2", After: "pid 12 since 2", Same: true},
			{Unit: "kibotos-vmm-3.service", Before: "pid 13 since 3", After: "gone"},
			{Unit: "kibotos-vmm-4.service", Before: "pid 14 since 4"},
		}},
		{Kind: run.BlockFailed, Block: "node-a/node", Host: "node-a", Text: "a step failed"},
		{Kind: run.RunStopped, Text: "node-a/node failed", Next: "kibo-rollout resume 20261130-120000-7f3a"},
	}
}
