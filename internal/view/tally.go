package view

import (
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// tally is what the events of a walk add up to.
type tally struct {
	plan    *plan.Plan
	blocks  map[string]plan.Block // by id
	steps   map[string]plan.Step  // by id, also those that end a block and those of a way back
	first   time.Time
	ends    map[string]run.EventKind // by block: BlockDone, BlockSkipped or BlockFailed
	began   map[string]time.Time     // by block
	spent   map[string]time.Duration // by block
	taken   []run.Event              // not given back
	proofs  []proof
	proofOf map[[2]string]int // index in proofs by host and unit
}

// proof is one VM's process on a host.
type proof struct {
	host string
	run.VMMProof
}

func newTally() *tally {
	return &tally{
		blocks: map[string]plan.Block{}, steps: map[string]plan.Step{}, ends: map[string]run.EventKind{},
		began: map[string]time.Time{}, spent: map[string]time.Duration{}, proofOf: map[[2]string]int{},
	}
}

func (t *tally) add(e run.Event) {
	if t.first.IsZero() {
		t.first = e.Time
	}
	switch e.Kind {
	case run.RunStarted, run.RunResumed:
		t.know(e.Plan)
	case run.BlockStarted:
		t.began[e.Block] = e.Time
	case run.BlockSkipped, run.BlockDone, run.BlockFailed:
		t.ends[e.Block] = e.Kind
		if began, ok := t.began[e.Block]; ok {
			t.spent[e.Block] = e.Time.Sub(began)
		}
	case run.Taken:
		t.taken = append(t.taken, e)
	case run.GivenBack:
		t.taken = slices.DeleteFunc(t.taken, func(o run.Event) bool { return o.Record == e.Record && o.Text == e.Text })
	case run.Continuity:
		t.prove(e)
	}
}

// know makes the plan's blocks and steps findable: large fleets have many of both.
func (t *tally) know(p *plan.Plan) {
	if p == nil {
		return
	}
	t.plan = p
	for _, b := range slices.Concat(p.Blocks, p.Clean) {
		t.blocks[b.ID] = b
		for _, st := range slices.Concat(b.Steps, b.Finally) {
			for _, each := range append([]plan.Step{st}, st.Back...) {
				t.steps[each.ID] = each
			}
		}
	}
}

// count is how many blocks ended so.
func (t *tally) count(kind run.EventKind) int {
	n := 0
	for _, k := range t.ends {
		if k == kind {
			n++
		}
	}
	return n
}

// prove keeps one proof per VM. What was only noted before a stop has no After yet, and waits for the comparison. One
// that ever said "not the same" is not made good by a later one.
func (t *tally) prove(e run.Event) {
	if e.Text == "noted" { // before a stop, and perhaps not the first one: what was noted earlier counts no more
		t.forgetProofs(e.Host)
	}
	for _, v := range e.VMMs {
		key := [2]string{e.Host, v.Unit}
		i, known := t.proofOf[key]
		switch {
		case !known:
			t.proofOf[key] = len(t.proofs)
			t.proofs = append(t.proofs, proof{e.Host, v})
		case t.proofs[i].Same || t.proofs[i].noted():
			t.proofs[i].VMMProof = v
		}
	}
}

func (t *tally) forgetProofs(host string) {
	t.proofs = slices.DeleteFunc(t.proofs, func(p proof) bool { return p.host == host })
	clear(t.proofOf)
	for i, p := range t.proofs {
		t.proofOf[[2]string{p.host, p.Unit}] = i
	}
}

// noted reports whether the VM was only noted so far, not compared.
func (p proof) noted() bool { return p.After == "" && !p.Same }
