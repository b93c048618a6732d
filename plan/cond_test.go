package plan

import (
	"errors"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// TestJudge: each kind of condition on facts that make it hold, fail, and unknown. Unknown is never yes.
func TestJudge(t *testing.T) {
	unit := func(u checks.Unit) checks.Facts {
		u.Name = "kibotos-node.service"
		return checks.Facts{Parts: []checks.PartFacts{{Part: release.Node, Unit: checks.Known(u)}}}
	}
	packages := func(p ...checks.Package) checks.Facts { return checks.Facts{Packages: checks.Known(p)} }
	window := func(open bool, id string) checks.Facts {
		return checks.Facts{Agent: checks.Known(gate.Status{Version: "1", Open: open, Window: &gate.AllowFile{ID: id}})}
	}
	noAgent := checks.Facts{Agent: checks.Unknown[gate.Status](checks.ErrNoAgent)}
	vmms := func(v ...checks.VMM) checks.Facts { return checks.Facts{VMMs: checks.Known(v)} }
	one := checks.VMM{Unit: "kibotos-vmm-1.service", PID: 7, Start: "100"}
	installed := Cond{Kind: CondPackage, Host: "h", Package: "kibotos-node", Value: "0.1.4"}
	stopped := Cond{Kind: CondStopped, Host: "h", Part: release.Node}
	inactive := Cond{Kind: CondStopped, Host: "h", Part: release.Node, Value: "inactive"}
	running := Cond{Kind: CondRunning, Host: "h", Part: release.Node}
	open, none := Cond{Kind: CondWindow, Host: "h", Value: "w"}, Cond{Kind: CondNoWindow, Host: "h", Value: "w"}
	agent := Cond{Kind: CondAgent, Host: "h"}
	same := Cond{Kind: CondContinuity, Host: "h"}
	for name, tc := range map[string]struct {
		cond  Cond
		facts checks.Facts
		want  Answer
	}{
		"installed":              {installed, packages(checks.Package{Name: "kibotos-node", Version: "0.1.4", State: "installed"}), Yes},
		"half-configured":        {installed, packages(checks.Package{Name: "kibotos-node", Version: "0.1.4", State: "half-configured"}), No},
		"other version":          {installed, packages(checks.Package{Name: "kibotos-node", Version: "0.1.2", State: "installed"}), No},
		"absent":                 {installed, packages(), No},
		"packages unknown":       {installed, checks.Facts{Packages: checks.Unknown[[]checks.Package](errors.New("no"))}, Unknown},
		"stopped":                {stopped, unit(checks.Unit{Active: "inactive", Sub: "dead"}), Yes},
		"failed is stopped":      {stopped, unit(checks.Unit{Active: "failed", Sub: "failed"}), Yes},
		"failed is not inactive": {inactive, unit(checks.Unit{Active: "failed", Sub: "failed"}), No},
		"process left":           {stopped, unit(checks.Unit{Active: "inactive", Processes: 1}), No},
		"auto-restart":           {stopped, unit(checks.Unit{Active: "activating", Sub: "auto-restart"}), No},
		"unit unknown":           {stopped, checks.Facts{}, Unknown},
		"running":                {running, unit(checks.Unit{Active: "active", MainPID: 4}), Yes},
		"running the old file":   {running, unit(checks.Unit{Active: "active", MainPID: 4, Stale: true}), No},
		"not running":            {running, unit(checks.Unit{Active: "failed", Result: "exit-code"}), No},
		"window open":            {open, window(true, "w"), Yes},
		"window of another":      {open, window(true, "x"), No},
		"window expired":         {open, window(false, "w"), No},
		"no agent, no window":    {none, noAgent, Yes},
		"no agent is not open":   {open, noAgent, Unknown},
		"window there":           {none, window(false, "w"), No},
		"agent":                  {agent, window(false, ""), Yes},
		"no agent":               {agent, noAgent, No},
		"agent unknown":          {agent, checks.Facts{}, Unknown},
		"same VMM":               {same, vmms(one), Yes},
		"VMM restarted":          {same, vmms(checks.VMM{Unit: one.Unit, PID: 8, Start: "200"}), No},
		"PID used again":         {same, vmms(checks.VMM{Unit: one.Unit, PID: 7, Start: "200"}), No},
		"VMM gone":               {same, vmms(), No},
		"VMMs unknown":           {same, checks.Facts{}, Unknown},
	} {
		seen := Seen{Facts: map[string]checks.Facts{"h": tc.facts}, Noted: map[string][]checks.VMM{"h": {one}}}
		if got := tc.cond.Judge(seen); got.Answer != tc.want {
			t.Errorf("%s: %v (%s), want %v", name, got.Answer, got.Why, tc.want)
		}
		if got := tc.cond.Judge(Seen{}); got.Answer != Unknown {
			t.Errorf("%s: a host nobody looked at answers %v", name, got.Answer)
		}
	}
}

// TestJudgeNodes: what ctrl says of nodes.
func TestJudgeNodes(t *testing.T) {
	rows := checks.Known([]checks.NodeRow{
		{Name: "a", State: "READY", Release: "0.1.4", Instances: 2, Commands: -1, Transfers: -1}, {Name: "b", State: "DRAINED", Release: "0.1.2", Instances: -1, Commands: -1},
		{Name: "c", State: "NOT-READY", Release: "0.1.2", Instances: 0, Commands: 1},
		{Name: "e", State: "READY", Release: "0.1.2"},
	})
	taken := func(record, of string) bool { return record == RecordDrain && of == "c" }
	two := map[string][]checks.VMM{"h": {{Unit: "x"}, {Unit: "y"}}}
	for name, tc := range map[string]struct {
		cond Cond
		want Answer
	}{
		"ready":                     {Cond{Kind: CondNodeState, Node: "a", Value: "READY"}, Yes},
		"one of":                    {Cond{Kind: CondNodeState, Node: "b", Value: "DRAINING|DRAINED"}, Yes},
		"not ready":                 {Cond{Kind: CondNodeState, Node: "c", Value: "READY"}, No},
		"not listed":                {Cond{Kind: CondNodeState, Node: "d", Value: "READY"}, No},
		"release":                   {Cond{Kind: CondNodeRelease, Node: "a", Value: "0.1.4"}, Yes},
		"other release":             {Cond{Kind: CondNodeRelease, Node: "b", Value: "0.1.4"}, No},
		"all back":                  {Cond{Kind: CondNodesReady, Nodes: []string{"a", "b"}}, Yes},
		"ours is waited for later":  {Cond{Kind: CondNodesReady, Nodes: []string{"a", "b", "c"}}, Yes},
		"one is missing":            {Cond{Kind: CondNodesReady, Nodes: []string{"a", "d"}}, No},
		"adopted":                   {Cond{Kind: CondAdopted, Node: "a", Host: "h"}, Yes},
		"no count":                  {Cond{Kind: CondAdopted, Node: "b", Host: "h"}, Yes},
		"too few":                   {Cond{Kind: CondAdopted, Node: "c", Host: "h"}, No},
		"nothing unfinished on it":  {Cond{Kind: CondSettled, Node: "a"}, Yes},
		"unfinished on it":          {Cond{Kind: CondSettled, Node: "b"}, No},
		"a command runs":            {Cond{Kind: CondSettled, Node: "c"}, No},
		"counted, none":             {Cond{Kind: CondSettled, Node: "e"}, Yes},
		"all, one unknown":          {*all(Cond{Kind: CondNodeState, Node: "a", Value: "READY"}, Cond{Kind: CondAgent, Host: "z"}), Unknown},
		"all, one no":               {*all(Cond{Kind: CondAgent, Host: "z"}, Cond{Kind: CondNodeState, Node: "c", Value: "READY"}), No},
		"any, one yes":              {*anyOf(Cond{Kind: CondAgent, Host: "z"}, Cond{Kind: CondNodeState, Node: "a", Value: "READY"}), Yes},
		"any, no yes, one unknown":  {*anyOf(Cond{Kind: CondNodeState, Node: "c", Value: "READY"}, Cond{Kind: CondAgent, Host: "z"}), Unknown},
		"any, one unknown and a no": {*anyOf(Cond{Kind: CondAgent, Host: "z"}, Cond{Kind: CondNodeState, Node: "c", Value: "READY"}), Unknown},
	} {
		seen := Seen{Nodes: rows, Taken: taken, Noted: two, Settling: checks.Known([]string{"command c-1 node=b running"})}
		if got := tc.cond.Judge(seen); got.Answer != tc.want {
			t.Errorf("%s: %v (%s), want %v", name, got.Answer, got.Why, tc.want)
		}
	}
	everywhere := Seen{Nodes: rows, Settling: checks.Known([]string{"an allocation of unknown outcome"})}
	if got := (Cond{Kind: CondSettled, Node: "a"}).Judge(everywhere); got.Answer != No {
		t.Errorf("an unfinished object without a node counts for every node: %v", got)
	}
}
