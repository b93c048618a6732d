package run

import (
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/plan"
)

// Past is what earlier walks of the same run left: where to look, not what is true. The hosts tell that.
type Past struct {
	Seq   int                     // last event's number; 0: there was no earlier walk
	Taken map[string]bool         // "record of": taken and not given back
	Noted map[string][]checks.VMM // by host: VMMs as noted before its last stop
	Tries map[string]int          // by step: attempts
	Open  map[string][]int        // by step: attempts that were started and have no end in the journal
	Begun map[string]bool         // by block: begun and not done
	Done  map[string]bool         // by step: done at some time
	// Proved holds the hosts whose VMMs were proved to be the same after their change: what ends later is no loss of this run.
	Proved map[string]bool
}

// PastOf reads the past out of a journal.
func PastOf(events []Event) Past {
	p := Past{
		Taken: map[string]bool{}, Noted: map[string][]checks.VMM{}, Tries: map[string]int{}, Open: map[string][]int{}, Begun: map[string]bool{},
		Done: map[string]bool{}, Proved: map[string]bool{},
	}
	for _, e := range events {
		p.Seq = max(p.Seq, e.Seq)
		switch e.Kind {
		case Taken:
			p.Taken[e.Record+" "+e.Text] = true
		case GivenBack:
			delete(p.Taken, e.Record+" "+e.Text)
		case BlockStarted:
			p.Begun[e.Block] = true
		case BlockDone, BlockSkipped, BlockHeld:
			delete(p.Begun, e.Block)
		case StepStarted:
			p.Tries[e.Step] = max(p.Tries[e.Step], e.Attempt)
			p.Open[e.Step] = append(p.Open[e.Step], e.Attempt)
		case StepDone:
			delete(p.Open, e.Step)
			p.Done[e.Step] = true
		case StepFailed:
			delete(p.Open, e.Step)
		case Continuity:
			p.continuity(e)
		}
	}
	return p
}

func (p *Past) continuity(e Event) {
	switch e.Text {
	case continuityNoted:
		p.Noted[e.Host] = notedVMMs(e.VMMs)
		delete(p.Proved, e.Host)
	case continuityProved:
		p.Proved[e.Host] = true
	}
}

// begins tells by their names at ctrl which nodes the run has begun with and not ended.
func (p Past) begins(blocks []plan.Block) map[string]bool {
	out := map[string]bool{}
	for _, b := range blocks {
		if b.Node != "" && p.Begun[b.ID] {
			out[b.Node] = true
		}
	}
	return out
}

func notedVMMs(proofs []VMMProof) []checks.VMM {
	out := make([]checks.VMM, 0, len(proofs))
	for _, p := range proofs {
		rest, ok := strings.CutPrefix(p.Before, "pid ")
		pid, start, found := strings.Cut(rest, " since ")
		n, err := strconv.Atoi(pid)
		if !ok || !found || err != nil {
			n = -1 // cannot be any process: the proof fails instead of passing unread
		}
		out = append(out, checks.VMM{Unit: p.Unit, PID: n, Start: start})
	}
	return out
}
