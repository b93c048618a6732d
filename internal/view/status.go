package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// Status draws the state of a fleet: parts with versions, units, drain state and VMMs, every host's gate, which versions
// run side by side (K4), runs that did not end, and hosts of which nothing is known, with the reason.
func (s Screen) Status(st Status) error {
	g := s.page()
	if len(st.Hosts)+len(st.Failed) == 0 {
		g.line("no hosts")
		return g.flush(s.Out)
	}
	g.statusHosts(st)
	g.statusGates(st)
	g.statusVersions(st)
	g.statusRest(st)
	return g.flush(s.Out)
}

func (p *page) statusHosts(st Status) {
	if len(st.Hosts) == 0 {
		return
	}
	p.heading("hosts")
	t := table{heads: []string{"HOST", "PART", "VERSION", "UNIT", "NODE", "RELEASE", "VMS", "ADDRESS"}}
	for _, h := range st.Hosts {
		if len(h.Parts) == 0 {
			t.add(cell{Line(h.Name), strong}, cell{"no part", faint}, cell{}, cell{}, cell{}, cell{}, cell{}, cell{Line(h.Address), faint})
		}
		for _, part := range h.Parts {
			node, rel, vms := cell{}, cell{}, cell{}
			if part.Part == release.Node {
				node, rel = nodeCells(st, h)
				vms = vmCell(h)
			}
			t.add(cell{Line(h.Name), strong}, cell{text: Line(string(part.Part))}, versionCell(part), unitCell(part),
				node, rel, vms, cell{Line(h.Address), faint})
		}
	}
	p.table(t)
}

func nodeCells(st Status, h HostState) (state, rel cell) {
	switch {
	case h.Node != nil && h.Node.State == "READY":
		return cell{"READY", good}, cell{text: Line(h.Node.Release)}
	case h.Node != nil:
		return cell{Line(h.Node.State), warn}, cell{text: Line(h.Node.Release)}
	case st.NodesError != "":
		return cell{"unknown", bad}, cell{}
	}
	return cell{"not at ctrl", bad}, cell{}
}

func vmCell(h HostState) cell {
	switch {
	case h.VMMsError != "":
		return cell{"unknown", bad}
	case h.hasVMMFact:
		return cell{text: strconv.Itoa(len(h.VMMs))}
	}
	return cell{}
}

func versionCell(p PartState) cell {
	if p.Version == "" {
		return cell{orUnknown(Line(p.Problem)), bad}
	}
	return cell{text: Line(p.Version)}
}

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func unitCell(p PartState) cell {
	if p.Unit == nil {
		return cell{"unknown", bad}
	}
	u := p.Unit
	text, t := Line(u.Active), bad
	switch {
	case u.Load != "" && u.Load != "loaded":
		text = Line(u.Load)
	case u.Running():
		t = good
	case u.Result != "" && u.Result != "success":
		text += " (" + Line(u.Result) + ")"
	}
	if u.Stale {
		text, t = text+", runs a replaced program", warn
	}
	if u.ExecOverride {
		text, t = text+", ExecStart overridden", warn
	}
	return cell{text, t}
}

func (p *page) statusGates(st Status) {
	if len(st.Hosts) == 0 {
		return
	}
	p.heading("gate")
	t := table{heads: []string{"HOST", "GATE", "AGENT", "NOT ENFORCED BY", "HELD BY", "JOB"}}
	for _, h := range st.Hosts {
		g := h.Gate
		if g == nil {
			state := cell{"no agent: nothing guards this host", warn}
			if !h.NoAgent {
				state = cell{"unknown: " + orUnknown(Line(h.GateError)), bad}
			}
			t.add(cell{Line(h.Name), strong}, state, cell{}, cell{}, cell{}, cell{})
			continue
		}
		t.add(cell{Line(h.Name), strong}, gateCell(*g, h.Clock), cell{text: Line(g.Version)}, cell{layers(*g), warn},
			cell{inhibitors(*g), warn}, cell{text: jobs(*g)})
	}
	p.table(t)
}

// gateCell says until when the gate is open, by the host's own clock.
func gateCell(g gate.Status, clock time.Time) cell {
	if !g.Open || g.Window == nil {
		text := "closed" // no allow-file is the normal closed gate (Z5) and needs no reason
		if g.Reason != "" && g.Code != gate.CodeMissing {
			text += ": " + Line(g.Reason)
		}
		return cell{text: text}
	}
	end := time.Unix(g.Window.NotAfter, 0).UTC()
	text := "open until " + end.Format("2006-01-02 15:04:05Z")
	if !clock.IsZero() {
		text += " (" + took(end.Sub(clock).Round(time.Second)) + ")"
	}
	if len(g.Window.Operations) > 0 {
		text += " for " + Line(strings.Join(g.Window.Operations, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Window.Packages)) {
		text += ", " + Line(name) + "=" + Line(g.Window.Packages[name])
	}
	if g.Window.SingleUse {
		text += ", once"
	}
	if g.Window.Reason != "" {
		text += ", " + Line(g.Window.Reason)
	}
	if g.Window.IssuedBy != "" {
		text += ", by " + Line(g.Window.IssuedBy)
	}
	return cell{text, warn}
}

func layers(g gate.Status) string {
	var off []string
	for _, l := range g.Layers {
		if !l.Active {
			off = append(off, Line(l.Name))
		}
	}
	return strings.Join(off, ", ")
}

// inhibitors are all who hold the host, and what changed on it past the gate.
func inhibitors(g gate.Status) string {
	var held []string
	for _, h := range g.Holds {
		held = append(held, fmt.Sprintf("%s: %s (hold %s since %s)", Line(h.Who), Line(h.Why), Line(h.ID), h.Since.UTC().Format("2006-01-02 15:04Z")))
	}
	for _, i := range g.Inhibitors {
		held = append(held, fmt.Sprintf("%s: %s (%s %s)", Line(i.Who), Line(i.Why), Line(i.Mode), Line(i.What)))
	}
	for _, u := range g.Ungated {
		held = append(held, fmt.Sprintf("%s went from %s to %s past the gate", Line(u.Package), orUnknown(Line(u.Was)), orUnknown(Line(u.Now))))
	}
	return strings.Join(held, "; ")
}

func jobs(g gate.Status) string {
	var running []string
	for _, j := range g.Jobs {
		if j.State == gate.JobRunning {
			running = append(running, Line(j.Key)+" runs")
		}
	}
	return strings.Join(running, "; ")
}

// statusVersions shows which version of each part is where, and whether the mixture may stay (K4).
func (p *page) statusVersions(st Status) {
	if len(st.Versions) == 0 {
		return
	}
	p.heading("versions")
	for _, l := range st.Versions {
		var each []string
		for _, v := range l.Versions {
			where := Line(strings.Join(v.Hosts, ", "))
			if len(l.Versions) == 1 {
				where = count(len(v.Hosts), "host")
			}
			each = append(each, Line(v.Version)+" on "+where)
		}
		p.text("  "+pad(Line(string(l.Part)), 4)+"  ", plain, strings.Join(each, "; "))
	}
	switch {
	case st.Mixed && st.OneLine:
		p.text("  ", warn, "The fleet is mixed, on one release line: it may stay so.")
	case st.Mixed:
		p.text("  ", bad, "The fleet is mixed, and not on one release line: ctrl refuses nodes of another line.")
	}
}

func (p *page) statusRest(st Status) {
	var rest []string
	for _, h := range st.Hosts {
		if h.DpkgAudit != "" {
			first, _, _ := strings.Cut(h.DpkgAudit, "\n")
			rest = append(rest, Line(h.Name)+": dpkg is not done: "+Line(first))
		}
		for _, problem := range h.Problems {
			rest = append(rest, Line(h.Name)+": "+Line(problem))
		}
	}
	for _, n := range st.Nodes {
		if n.Host == "" {
			rest = append(rest, "node "+Line(n.Name)+" is "+Line(n.State)+" at ctrl, and no host here is it")
		}
	}
	if st.NodesError != "" && st.NodesError != checks.ErrNotGathered.Error() {
		rest = append(rest, "ctrl's node list is not known: "+Line(st.NodesError))
	}
	if len(rest) > 0 {
		p.heading("to know")
		for _, r := range rest {
			p.item("  ! ", warn, plain, r)
		}
	}
	p.notReached(st)
	for _, r := range st.Runs {
		p.gap()
		p.text("", warn, "run "+Line(r.Run)+" did not end ("+Line(r.Host)+" remembers it)")
		if r.Next != "" {
			p.labelled("next: ", strong, r.Next)
		}
	}
}

func (p *page) notReached(st Status) {
	if len(st.Failed) == 0 {
		return
	}
	p.heading("not reached")
	for _, f := range st.Failed {
		p.item("  "+Line(f.Host)+"  ", strong, bad, Line(f.Reason))
	}
}
