package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/plan"
)

// blocks walks blocks wave by wave and stops after the first wave in which one failed. Blocks whose host somebody holds are gone
// around, and come back to before the first block that needs them all (Z7).
func (w *walk) blocks(ctx context.Context, blocks []plan.Block) *failure {
	var held []plan.Block
	for len(blocks) > 0 {
		n := slices.IndexFunc(blocks, func(b plan.Block) bool { return b.Wave != blocks[0].Wave })
		if n < 0 {
			n = len(blocks)
		}
		if len(held) > 0 && !blocks[0].Around {
			if f := w.comeBack(ctx, held); f != nil {
				return f
			}
			held = nil
		}
		later, f := w.wave(ctx, blocks[:n])
		if f != nil {
			return f
		}
		held = append(held, later...)
		blocks = blocks[n:]
	}
	return w.comeBack(ctx, held)
}

// comeBack walks the blocks of held hosts as their hosts become free, whichever is first, until nothing has become free for as
// long as the plan waits for a held host.
func (w *walk) comeBack(ctx context.Context, held []plan.Block) *failure {
	end := w.Now().Add(patience(held))
	for len(held) > 0 {
		var still []plan.Block
		for _, b := range held {
			later, f := w.wave(ctx, []plan.Block{b})
			if f != nil {
				return f
			}
			still = append(still, later...)
		}
		if len(still) < len(held) {
			held, end = still, w.Now().Add(patience(still))
			continue
		}
		if !w.Now().Before(end) {
			return heldFor(held)
		}
		w.awaitFree(ctx, held, end)
	}
	return nil
}

// patience is how long the plan waits for a held host.
func patience(blocks []plan.Block) time.Duration {
	var most time.Duration
	for _, b := range blocks {
		for _, st := range b.Steps {
			if st.Free {
				most = max(most, st.Limit)
			}
		}
	}
	return most
}

func heldFor(held []plan.Block) *failure {
	hosts := make([]string, len(held))
	for i, b := range held {
		hosts[i] = b.Host
	}
	f := &failure{class: GateClosed, why: fmt.Sprintf("complete except for %d held hosts: %s", len(held), strings.Join(hosts, ", "))}
	f.left = "nothing was begun on them"
	return f.at(held[0], plan.Step{Host: held[0].Host})
}

// wave walks blocks at the same time, at most Forks of them. It returns the blocks that are held, and the first failure in plan order.
func (w *walk) wave(ctx context.Context, blocks []plan.Block) ([]plan.Block, *failure) {
	if w.stopped(ctx) {
		return nil, &failure{class: Interrupted, why: "stopped as asked, between two blocks"}
	}
	forks := w.Forks
	if forks <= 0 {
		forks = 50
	}
	slots := make(chan struct{}, forks)
	fails := make([]*failure, len(blocks))
	var wg sync.WaitGroup
	for i, b := range blocks {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fails[i] = w.block(ctx, b)
		})
	}
	wg.Wait()
	var held []plan.Block
	for i, f := range fails {
		switch {
		case f == nil:
		case f.held && blocks[i].Around:
			held = append(held, blocks[i])
		default:
			return nil, f
		}
	}
	return held, nil
}

// Bounds of waiting for a held host: how long one look lasts, and how often a host that cannot watch is asked.
const (
	watchTime  = 30 * time.Second
	watchPause = time.Second
)

// awaitFree waits until one of the hosts is free: each tells by itself, when its holds and locks change. Hosts that cannot are asked
// again a little later.
func (w *walk) awaitFree(ctx context.Context, held []plan.Block, end time.Time) {
	ctx, cancel := context.WithTimeout(ctx, max(min(watchTime, end.Sub(w.Now())), watchPause))
	defer cancel()
	told := make(chan bool, len(held))
	for _, b := range held {
		go func() { told <- w.watchFree(ctx, b.Host) }()
	}
	for range held {
		select {
		case free := <-told:
			if free {
				return
			}
		case <-w.Stop:
			return
		}
	}
	w.Pause(ctx, watchPause)
}

// watchFree reports whether the host said that nobody holds it any more.
func (w *walk) watchFree(ctx context.Context, host string) bool {
	conn, err := w.Fleet.Conn(ctx, host)
	if err != nil {
		return false
	}
	res, err := conn.Run(ctx, plan.WatchCommand(watchTime))
	return err == nil && res.Exit == 0
}
