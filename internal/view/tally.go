package view

import (
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// tally is what the events of a walk add up to. The zero value is a walk of which nothing was heard.
type tally struct {
	plan    *plan.Plan
	first   time.Time
	done    []string // blocks done, or found done already
	skipped int      // of those, found done already
	failed  []string // blocks
	spent   []spent
	taken   []run.Event // not given back
	proofs  []proof
}

// spent is how long a block took.
type spent struct {
	block string
	began time.Time
	took  time.Duration
}

// proof is one VM's process on a host.
type proof struct {
	host string
	run.VMMProof
}

func (t *tally) add(e run.Event) {
	if t.first.IsZero() {
		t.first = e.Time
	}
	switch e.Kind {
	case run.RunStarted, run.RunResumed:
		if e.Plan != nil {
			t.plan = e.Plan
		}
	case run.BlockStarted:
		t.spent = append(t.spent, spent{block: e.Block, began: e.Time})
	case run.BlockSkipped:
		t.skipped++
		t.done = append(t.done, e.Block)
	case run.BlockDone:
		t.done = append(t.done, e.Block)
		t.ended(e)
	case run.BlockFailed:
		t.failed = append(t.failed, e.Block)
		t.ended(e)
	case run.Taken:
		t.taken = append(t.taken, e)
	case run.GivenBack:
		t.taken = slices.DeleteFunc(t.taken, func(o run.Event) bool { return o.Record == e.Record && o.Text == e.Text })
	case run.Continuity:
		t.prove(e)
	}
}

func (t *tally) ended(e run.Event) {
	for i := range t.spent {
		if t.spent[i].block == e.Block {
			t.spent[i].took = e.Time.Sub(t.spent[i].began)
			if e.Took > 0 {
				t.spent[i].took = e.Took
			}
		}
	}
}

// prove keeps one proof per VM. What was only noted before a stop has no After yet, and waits for the comparison. One
// that ever said "not the same" is not made good by a later one.
func (t *tally) prove(e run.Event) {
	for _, v := range e.VMMs {
		i := slices.IndexFunc(t.proofs, func(p proof) bool { return p.host == e.Host && p.Unit == v.Unit })
		switch {
		case i < 0:
			t.proofs = append(t.proofs, proof{e.Host, v})
		case t.proofs[i].Same || t.proofs[i].noted():
			t.proofs[i].VMMProof = v
		}
	}
}

// noted reports whether the VM was only noted so far, not compared.
func (p proof) noted() bool { return p.After == "" && !p.Same }

func (t *tally) blocks() []plan.Block {
	if t.plan == nil {
		return nil
	}
	return slices.Concat(t.plan.Blocks, t.plan.Clean)
}

func (t *tally) block(id string) (plan.Block, bool) {
	for _, b := range t.blocks() {
		if b.ID == id {
			return b, true
		}
	}
	return plan.Block{}, false
}

// step finds a step of the plan, also among those that end a block and those of a way back.
func (t *tally) step(id string) (plan.Step, bool) {
	for _, b := range t.blocks() {
		for _, st := range slices.Concat(b.Steps, b.Finally) {
			for _, each := range append([]plan.Step{st}, st.Back...) {
				if each.ID == id {
					return each, true
				}
			}
		}
	}
	return plan.Step{}, false
}
