package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func fleetRules() []rule {
	return []rule{
		{
			id: "node-state", title: "ctrl knows each node and schedules on it", of: "K35", scope: perFleet, needs: "Nodes",
			verdict: "block if ctrl does not know a node or says it is neither READY nor drained; warn if it is drained already: it stays so",
			remedy:  "kibo node list; set kibo_node_name if ctrl calls the node otherwise",
			fleet:   judgeNodes,
		},
		{
			id: "node-outside", title: "every node that ctrl knows is in the inventory", of: "K4", scope: perFleet, needs: "Nodes",
			verdict: "warn of nodes that no selected host stands for: they keep their version",
			remedy:  "add them to the inventory, or leave them as they are on the same line",
			fleet:   judgeOutside,
		},
		{
			id: "line", title: "ctrl and nodes are on one release line", of: "K1 K3 K4", scope: perFleet, needs: "Parts.Version, Nodes",
			verdict: "warn if the fleet is mixed on one line; block if ctrl and a node are on different lines",
			remedy:  "kibo-rollout status",
			fleet:   judgeLine,
		},
		{
			id: "path", title: "the target can be reached from what is installed", of: "K5 K62", scope: perFleet, needs: "Parts.Version",
			verdict: "block if the contract rules the move out", remedy: "choose another version with --to",
			fleet: judgePath,
		},
		{
			id: "machine", title: "no two names stand for one machine", scope: perFleet, needs: "Machine, Boot",
			verdict: "block if two names reach the same machine; warn if machines were cloned with their machine id",
			remedy:  "kibo-rollout inventory list",
			fleet:   judgeMachines,
		},
	}
}

func judgeNodes(in Input) []verdict {
	rows, err := in.Nodes.Get()
	if err != nil {
		if !slices.ContainsFunc(in.Hosts, func(h HostInput) bool { return has(h, release.Node) }) {
			return nil
		}
		return unknown("what ctrl says of its nodes", err)
	}
	var out []verdict
	for _, h := range in.Hosts {
		if !has(h, release.Node) {
			continue
		}
		v := judgeNode(rows, h.NodeName, in.Run)
		v.host = h.Name
		out = append(out, v)
	}
	return out
}

func judgeNode(rows []NodeRow, name, run string) verdict {
	i := slices.IndexFunc(rows, func(r NodeRow) bool { return r.Name == name })
	if i < 0 {
		return verdict{level: Block, text: "ctrl does not know a node called " + printable(name)}
	}
	r := rows[i]
	switch r.State {
	case "READY":
		return verdict{level: Pass, text: "node " + r.Name + " is READY"}
	case "DRAINING", "DRAINED":
		return verdict{
			level:  Warn,
			text:   "node " + r.Name + " is " + r.State + " already: if not by this run, it stays drained afterwards",
			remedy: "kibo node cancel-drain " + r.Name + ", if nobody needs the drain",
		}
	}
	level := Block
	if run != "" {
		level = Warn // stopped in the middle by the very run that goes on
	}
	text := "node " + r.Name + " is " + r.State
	if r.Unready != "" {
		text += ": " + r.Unready
	}
	return verdict{level: level, text: text, remedy: "kibo-rollout status -l HOST"}
}

func judgeOutside(in Input) []verdict {
	rows, err := in.Nodes.Get()
	if err != nil {
		return nil // judgeNodes says so
	}
	var out []string
	for _, r := range rows {
		inside := slices.ContainsFunc(in.Hosts, func(h HostInput) bool { return has(h, release.Node) && h.NodeName == r.Name })
		if !inside {
			out = append(out, r.Name+" ("+r.Release+")")
		}
	}
	if len(out) > 0 {
		return warn("ctrl has nodes outside of the selection, which keep their version: " + printable(strings.Join(out, ", ")))
	}
	return pass("every node that ctrl knows is selected")
}

// judgeLine compares what is installed. Nodes that are down say by their program what ctrl cannot say.
func judgeLine(in Input) []verdict {
	seen := versions(in, release.Ctrl, release.Node)
	ctrls := versions(in, release.Ctrl)
	if rows, err := in.Nodes.Get(); err == nil {
		for _, r := range rows {
			if r.Release != "" && !slices.Contains(seen, r.Release) {
				seen = append(seen, r.Release)
			}
		}
	}
	if len(seen) < 2 {
		return pass("ctrl and nodes are of one version")
	}
	list := strings.Join(seen, ", ")
	for _, c := range ctrls {
		for _, v := range seen {
			if c != v && !release.SameLine(c, v) {
				return block(printable(fmt.Sprintf("ctrl is %s and refuses nodes of another line, but there is %s", c, v)))
			}
		}
	}
	return warn("the fleet is mixed on one release line, which may stay so: " + printable(list))
}

func judgePath(in Input) []verdict {
	var from []release.Build
	for _, v := range versions(in, release.Parts()...) {
		from = append(from, release.Build{Version: v})
	}
	if len(from) == 0 {
		return unknown("the installed version", ErrNotGathered)
	}
	mode, why, err := release.ModeFor(from, release.Build{Version: in.Target.Version})
	if err != nil {
		return block(printable(err.Error()))
	}
	return pass(string(mode) + ": " + why)
}

// versions lists the different versions of the installed programs of some parts, in inventory order.
func versions(in Input, parts ...release.Part) []string {
	var out []string
	for _, h := range in.Hosts {
		for _, p := range h.Facts.Parts {
			v, err := p.Version.Get()
			if err == nil && slices.Contains(parts, p.Part) && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

func judgeMachines(in Input) []verdict {
	var out []verdict
	first := map[string]HostInput{}
	for _, h := range in.Hosts {
		if h.Err != nil {
			continue
		}
		id, err := h.Facts.Machine.Get()
		if err != nil {
			v := unknown("which machine it is", err)[0]
			v.host, v.remedy = h.Name, "ssh HOST cat /etc/machine-id"
			out = append(out, v)
			continue
		}
		other, twice := first[id]
		if !twice {
			first[id] = h
			continue
		}
		a, errA := h.Facts.Boot.Get()
		b, errB := other.Facts.Boot.Get()
		v := verdict{level: Block, host: h.Name, text: other.Name + " and " + h.Name + " are the same machine"}
		if errA == nil && errB == nil && a != b {
			v = verdict{
				level: Warn, host: h.Name, text: other.Name + " and " + h.Name + " share a machine id: one was cloned from the other",
				remedy: "ssh HOST sudo systemd-machine-id-setup, after removing /etc/machine-id, at a time when a reboot is possible",
			}
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return pass("every name stands for a machine of its own")
	}
	return out
}

// CtrlFirst judges a selection without ctrl: nodes and gateways are upgraded after ctrl, never before it (K34, K56).
func CtrlFirst(target release.Target, ctrl Facts, hosts []HostInput) []Finding {
	pkg, ok, err := ctrl.pkg(release.Ctrl.Package())
	arch, noArch := ctrl.Arch.Get()
	d, have := target.Deb(release.Ctrl, arch)
	level, text := Block, ""
	switch {
	case err != nil || noArch != nil || !ok:
		level, text = UnknownFact, "which version ctrl is on is not known"
	case !have:
		level, text = UnknownFact, "the target has no package of ctrl to compare with"
	default:
		order, err := release.CompareDebian(pkg.Version, d.Version)
		if err == nil && order >= 0 {
			return nil
		}
		text = fmt.Sprintf("ctrl on %s is %s, older than the target, and is not selected: it goes first", ctrl.Host, printable(pkg.Version))
	}
	var out []Finding
	for _, h := range hosts {
		out = append(out, Finding{Check: "ctrl-first", Host: h.Name, Level: level, Text: text, Remedy: "select ctrl's host too: -l " + ctrl.Host + ":" + h.Name})
	}
	return out
}
