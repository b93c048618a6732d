package run

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
)

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
			out[h.Name] = compare(was, now, err)
		})
	}
	wg.Wait()
	for _, h := range w.Plan.Hosts {
		if p, ok := out[h.Name]; ok {
			w.tell(ctx, Event{Kind: Continuity, Host: h.Name, Text: "proved", VMMs: p})
		}
	}
	return out
}

func compare(was, now []checks.VMM, err error) []VMMProof {
	out := before(was)
	for i := range out {
		n := slices.IndexFunc(now, func(v checks.VMM) bool { return v.Unit == out[i].Unit })
		switch {
		case err != nil:
			out[i].After = "unknown: " + err.Error()
		case n < 0:
			out[i].After = "gone"
		default:
			out[i].After = proof(now[n])
			out[i].Same = now[n] == was[i]
		}
	}
	return out
}
