package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/plan"
)

// What a continuity event tells.
const (
	continuityNoted  = "noted"  // VMMs just before a stop
	continuityProved = "proved" // the same ones after the change
	continuityFinal  = "final"  // and at the end of the walk
)

// prove keeps that the VMMs of a host are the same after its change, at the moment when that is seen: a Workspace that its owner
// stops later is no loss of this run.
func (w *walk) prove(ctx context.Context, v *view, st plan.Step) {
	if st.Proves == "" {
		return
	}
	now, err := v.seen.Facts[st.Proves].VMMs.Get()
	w.mu.Lock()
	was, noted := w.notedBy[st.Proves]
	if err == nil && noted {
		w.proved[st.Proves] = true
	}
	w.mu.Unlock()
	if err == nil && noted {
		w.tell(ctx, Event{Kind: Continuity, Host: st.Proves, Text: continuityProved, VMMs: compare(was, now, nil, false)})
	}
}

// proofs compares, on every host whose service was stopped, the VMMs noted before with those of now (K41).
func (w *walk) proofs(ctx context.Context) map[string][]VMMProof {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w.mu.Lock()
	noted := make(map[string][]checks.VMM, len(w.notedBy))
	for h, v := range w.notedBy {
		noted[h] = v
	}
	w.mu.Unlock()
	out := make(map[string][]VMMProof, len(noted))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, h := range w.Plan.Hosts {
		was, ok := noted[h.Name]
		if !ok {
			continue
		}
		wg.Go(func() {
			facts, _, err := w.ask(ctx, h.Name, false)
			var now []checks.VMM
			if err == nil {
				now, err = facts.VMMs.Get()
			}
			mu.Lock()
			defer mu.Unlock()
			out[h.Name] = compare(was, now, err, w.proved[h.Name])
		})
	}
	wg.Wait()
	for _, h := range w.Plan.Hosts {
		if p, ok := out[h.Name]; ok {
			w.tell(ctx, Event{Kind: Continuity, Host: h.Name, Text: continuityFinal, VMMs: p})
		}
	}
	return out
}

// compare holds VMMs noted before against those of now. One that is gone after it was proved was ended by somebody else.
func compare(was, now []checks.VMM, err error, proved bool) []VMMProof {
	out := before(was)
	for i := range out {
		n := slices.IndexFunc(now, func(v checks.VMM) bool { return v.Unit == out[i].Unit })
		switch {
		case err != nil:
			out[i].After = "unknown: " + err.Error()
		case n < 0:
			out[i].After, out[i].Ended = "gone", proved
		default:
			out[i].After = proof(now[n])
			out[i].Same = now[n] == was[i]
		}
	}
	return out
}

func before(vmms []checks.VMM) []VMMProof {
	out := make([]VMMProof, len(vmms))
	for i, v := range vmms {
		out[i] = VMMProof{Unit: v.Unit, Before: proof(v)}
	}
	return out
}

func proof(v checks.VMM) string { return fmt.Sprintf("pid %d since %s", v.PID, v.Start) }
