package run

import (
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
)

// Past is what earlier walks of the same run left: where to look, not what is true. The hosts tell that.
type Past struct {
	Seq   int                     // last event's number; 0: there was no earlier walk
	Taken map[string]bool         // "record of": taken and not given back
	Noted map[string][]checks.VMM // by host: VMMs as noted before its first stop
	Tries map[string]int          // by step: attempts
	Open  map[string]int          // by step: the attempt that was started and has no end in the journal
	Begun map[string]bool         // by block: begun and not done
}

// PastOf reads the past out of a journal.
func PastOf(events []Event) Past {
	p := Past{Taken: map[string]bool{}, Noted: map[string][]checks.VMM{}, Tries: map[string]int{}, Open: map[string]int{}, Begun: map[string]bool{}}
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
			p.Open[e.Step] = e.Attempt
		case StepDone, StepFailed:
			delete(p.Open, e.Step)
		case Continuity:
			if _, have := p.Noted[e.Host]; !have && e.Text == "noted" {
				p.Noted[e.Host] = notedVMMs(e.VMMs)
			}
		}
	}
	return p
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

// Finished reports whether the run came to its end.
func (r Record) Finished() bool {
	return len(r.Events) > 0 && r.Events[len(r.Events)-1].Kind == RunDone
}
