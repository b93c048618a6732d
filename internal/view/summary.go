package view

import (
	"fmt"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// summary is the end of a walk: what each host has now, the proof that the VMs are the same, what was left, how long it
// took, and how it ended.
func (p *page) summary(t *tally, end run.Event) {
	if t.plan != nil {
		p.hostsAfter(t)
	}
	p.continuity(t.proofs)
	p.left(t.taken)
	p.gap()
	done, before, failed := t.count(run.BlockDone), t.count(run.BlockSkipped), t.count(run.BlockFailed)
	whole := count(done+before, "block") + " done"
	if before > 0 {
		whole += fmt.Sprintf(" (%d already before)", before)
	}
	if failed > 0 {
		whole += fmt.Sprintf(", %d failed", failed)
	}
	whole += " in " + took(end.Time.Sub(t.first))
	if end.Kind == run.RunDone {
		p.item("done: ", good, plain, whole+evidence(end.Text))
		return
	}
	p.text("", plain, whole)
	p.failure("stopped: "+end.Text, end.Next)
}

func (p *page) hostsAfter(t *tally) {
	p.line("%s", p.paint(strong, "hosts"))
	table := table{heads: []string{"HOST", "PART", "BEFORE", "NOW", "TOOK"}}
	for _, h := range t.plan.Hosts {
		for _, part := range h.Parts {
			before := "not installed"
			for _, v := range h.Versions {
				if v.Part == part && v.Version != "" {
					before = Line(v.Version)
				}
			}
			id := h.Name + "/" + string(part)
			table.add(cell{Line(h.Name), strong}, cell{text: Line(string(part))}, cell{text: before},
				t.after(id, before), cell{t.tookFor(id), faint})
		}
	}
	p.table(table)
}

// after is the version that the walk itself saw on the host at the end of the part's block.
func (t *tally) after(id, before string) cell {
	_, planned := t.blocks[id]
	switch end := t.ends[id]; {
	case end == run.BlockFailed:
		return cell{"failed: see status", bad}
	case end != "":
		return cell{Line(t.plan.Target.Version), good}
	case planned:
		return cell{before + " (not reached)", warn}
	}
	return cell{text: before}
}

func (t *tally) tookFor(id string) string {
	if d := t.spent[id]; d > 0 {
		return took(d)
	}
	return ""
}

// continuity is the proof of K41: unit, PID and start time of every VMM before and after.
func (p *page) continuity(proofs []proof) {
	if len(proofs) == 0 {
		return
	}
	p.heading("virtual machines")
	hosts := map[string]bool{}
	t := table{heads: []string{"HOST", "UNIT", "BEFORE", "AFTER"}}
	same, ended := 0, 0
	for _, v := range proofs {
		hosts[v.host] = true
		if v.Same || v.Ended {
			same++
			if v.Ended {
				ended++
			}
			continue
		}
		after := cell{Line(v.After), bad}
		if v.noted() {
			after = cell{"not compared", warn}
		}
		t.add(cell{Line(v.host), strong}, cell{text: Line(v.Unit)}, presence(v.Before), after)
	}
	on := ", on " + count(len(hosts), "host")
	if ended > 0 {
		on += fmt.Sprintf(" (%d of them ended by others since, after that was proved)", ended)
	}
	if len(t.rows) == 0 {
		p.text("  ", good, fmt.Sprintf("every VMM is the same process: %d of %d%s", same, len(proofs), on))
		return
	}
	p.text("  ", bad, fmt.Sprintf("%d of %s are proved to be the same process%s; these are not:", same, count(len(proofs), "VMM"), on))
	p.table(t)
}

func presence(process string) cell {
	if process == "" {
		return cell{"not there", bad}
	}
	return cell{text: Line(process)}
}

// left lists what the run took and did not give back.
func (p *page) left(taken []run.Event) {
	if len(taken) == 0 {
		return
	}
	p.heading("left as it is")
	for _, e := range taken {
		p.item("  ! ", warn, plain, leftText(e.Record, Line(e.Text)))
	}
}

// leftText says what was taken of whom: a node, or a host.
func leftText(record, of string) string {
	switch record {
	case plan.RecordDrain:
		return "node " + of + " is still drained by this run"
	case plan.RecordWindow:
		return of + ": the gate's window is open until it ends by itself"
	case plan.RecordStage:
		return of + ": the staging directory is still there"
	}
	return of + ": " + Line(record) + " was not given back"
}
