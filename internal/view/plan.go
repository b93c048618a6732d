package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Plan draws a plan: what is aimed for and why in this mode, every host with its versions, what must be known before
// saying yes, the blocks in order, the findings by cause, and counts. Verbose adds every step and the findings that pass.
func (s Screen) Plan(p plan.Plan) error {
	g := s.page()
	g.planHead(p)
	g.planHosts(p)
	if len(p.Notes) > 0 {
		g.heading("before you say yes")
		for _, n := range p.Notes {
			g.item("  ! ", warn, plain, Line(n))
		}
	}
	g.planBlocks(p, s.Verbose)
	g.findings(p.Findings, s.Verbose)
	g.planCounts(p)
	return g.flush(s.Out)
}

func (p *page) heading(text string) {
	p.gap()
	p.line("%s", p.paint(strong, text))
}

func (p *page) planHead(pl plan.Plan) {
	p.text("", strong, aim(pl))
	if pl.Why != "" {
		p.item("  why   ", faint, plain, Line(pl.Why))
	}
	if pl.ID != "" {
		p.item("  plan  ", faint, plain, Line(pl.ID))
	}
}

// aim is a plan in one line.
func aim(pl plan.Plan) string {
	if pl.Mode == plan.Agents {
		return "installation of kibo-agent"
	}
	return fmt.Sprintf("%s upgrade to Kibotos %s", Line(string(pl.Mode)), Line(pl.Target.Version))
}

func (p *page) planHosts(pl plan.Plan) {
	if len(pl.Hosts) == 0 {
		return
	}
	p.heading("hosts")
	t := table{heads: []string{"HOST", "PART", "NOW", "TARGET", "NODE", "VMS", "ADDRESS"}}
	for _, h := range pl.Hosts {
		for _, part := range h.Parts {
			now := "not installed"
			for _, v := range h.Versions {
				if v.Part == part && v.Version != "" {
					now = Line(v.Version)
				}
			}
			to := cell{text: "as it is", tone: faint}
			if slices.ContainsFunc(pl.Target.Debs, deb(part)) {
				to = cell{text: Line(pl.Target.Version)}
				if now == to.text {
					to.tone = faint
				}
			}
			node, vms := "", ""
			if part == "node" {
				vms = strconv.Itoa(h.VMMs)
				if h.NodeName != h.Name {
					node = Line(h.NodeName)
				}
			}
			t.add(cell{Line(h.Name), strong}, cell{text: Line(string(part))}, cell{text: now}, to,
				cell{text: node}, cell{text: vms}, cell{Line(h.Address), faint})
		}
	}
	p.table(t)
}

func (p *page) planBlocks(pl plan.Plan, verbose bool) {
	if len(pl.Blocks) == 0 {
		p.gap()
		p.text("", good, "nothing to do: no host needs a step")
		return
	}
	p.heading("what happens, in order")
	lead := 0
	for _, b := range slices.Concat(pl.Blocks, pl.Clean) {
		lead = max(lead, len(strconv.Itoa(b.Wave)))
	}
	seen := map[string]int{} // wave of the first block with these steps
	for i, list := range [][]plan.Block{pl.Blocks, pl.Clean} {
		if i == 1 && len(list) > 0 {
			p.text("  ", faint, "afterwards, also when the walk was refused before anything was replaced:")
		}
		for _, l := range alike(list) {
			number := fmt.Sprintf("  %*d  ", lead, l[0].Wave)
			p.item(number, faint, strong, title(l))
			margin := strings.Repeat(" ", len(number))
			if verbose {
				p.planSteps(margin, l[0])
				continue
			}
			if wave, ok := seen[steps(l[0])]; ok {
				p.text(margin, faint, fmt.Sprintf("the same steps as in %d", wave))
				continue
			}
			seen[steps(l[0])] = l[0].Wave
			p.text(margin, plain, titles(l[0].Steps))
			if len(l[0].Finally) > 0 {
				p.item(margin+"in any case: ", faint, plain, titles(l[0].Finally))
			}
		}
	}
	p.gap()
	p.text("  ", faint, "The number is the wave: blocks of one wave run at the same time, waves in order.")
}

// alike gathers neighbours of one wave that differ in nothing but the host, so that a hundred hosts are not a hundred lines.
func alike(blocks []plan.Block) [][]plan.Block {
	var out [][]plan.Block
	for _, b := range blocks {
		if n := len(out) - 1; n >= 0 && shape(out[n][0]) == shape(b) {
			out[n] = append(out[n], b)
			continue
		}
		out = append(out, []plan.Block{b})
	}
	return out
}

// shape is what a block is, whatever its host.
func shape(b plan.Block) string {
	return strconv.Itoa(b.Wave) + "\x00" + strings.ReplaceAll(b.Title, b.Host, "\x00") + "\x00" + steps(b)
}

// steps is what a block does, whatever its host.
func steps(b plan.Block) string {
	return strings.ReplaceAll(titles(b.Steps)+"\x00"+titles(b.Finally), b.Host, "\x00")
}

// title names blocks that are alike, with all their hosts in the place of the first one's.
func title(blocks []plan.Block) string {
	first := blocks[0]
	if len(blocks) == 1 {
		return blockTitle(first)
	}
	hosts := make([]string, len(blocks))
	for i, b := range blocks {
		hosts[i] = Line(b.Host)
	}
	all := strings.Join(hosts, ", ")
	before, after, found := strings.Cut(first.Title, first.Host)
	if !found {
		return all + ": " + Line(first.Title)
	}
	return Line(before) + all + Line(after)
}

func (p *page) planSteps(margin string, b plan.Block) {
	for _, st := range b.Steps {
		p.text(margin+"- ", plain, stepLine(st))
		for _, back := range st.Back {
			p.text(margin+"  ", faint, "if refused, back: "+stepLine(back))
		}
	}
	for _, st := range b.Finally {
		p.text(margin+"- ", plain, "in any case: "+stepLine(st))
	}
	if b.Stuck != "" {
		p.item(margin+"if it fails: ", warn, plain, Line(b.Stuck))
	}
}

func stepLine(st plan.Step) string {
	notes := []string{Line(string(st.Effect))}
	if st.Limit > 0 {
		notes = append(notes, "at most "+took(st.Limit))
	}
	if st.Rule != "" {
		notes = append(notes, Line(st.Rule))
	}
	return Line(st.Title) + " (" + strings.Join(notes, ", ") + ")"
}

func blockTitle(b plan.Block) string {
	if strings.Contains(b.Title, b.Host) {
		return Line(b.Title)
	}
	return Line(b.Host) + ": " + Line(b.Title)
}

func titles(steps []plan.Step) string {
	out := make([]string, len(steps))
	for i, st := range steps {
		out[i] = Line(st.Title)
	}
	return strings.Join(out, " · ")
}

func (p *page) planCounts(pl plan.Plan) {
	all, changes, disrupts := 0, 0, 0
	for _, b := range slices.Concat(pl.Blocks, pl.Clean) {
		for _, st := range slices.Concat(b.Steps, b.Finally) {
			all++
			switch st.Effect {
			case command.Changes:
				changes++
			case command.Disrupts:
				disrupts++
			}
		}
	}
	p.gap()
	p.text("", strong, fmt.Sprintf("%s, %s, %s: %d change a host, %d stop or start a service",
		count(len(pl.Hosts), "host"), count(len(pl.Blocks)+len(pl.Clean), "block"), count(all, "step"), changes, disrupts))
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
