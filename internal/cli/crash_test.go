package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/run"
)

var errKilled = errors.New("killed")

// dyingJournal keeps n events and then ends the walk as a kill does: the event is lost or kept, and nothing is sent to any host
// after it.
type dyingJournal struct {
	inner run.Journal
	left  int
	keep  bool // the last event reaches the disk, and the walk dies before it acts on it
	dead  *atomic.Bool
	end   context.CancelFunc
	total *int
}

func (j *dyingJournal) Append(ctx context.Context, e run.Event, sync bool) error {
	*j.total++
	if j.dead.Load() {
		return errKilled
	}
	j.left--
	if j.left == 0 {
		if j.keep {
			_ = j.inner.Append(ctx, e, sync)
		}
		j.dead.Store(true)
		j.end()
		return errKilled
	}
	return j.inner.Append(ctx, e, sync)
}

// dyingFleet reaches no host once the walk is dead.
type dyingFleet struct {
	run.Fleet
	dead *atomic.Bool
}

func (f dyingFleet) Conn(ctx context.Context, host string) (remote.Conn, error) {
	if f.dead.Load() {
		return nil, &remote.Error{Host: host, Kind: remote.Unreachable, Err: errKilled}
	}
	return f.Fleet.Conn(ctx, host)
}

// TestCrash kills the walk at every journal write, once before the event is on disk and once after, and lets `apply` go on.
// Whatever happened, the target is reached, no VM is touched, no drain or window is left, nothing is done twice that must be done
// once.
func TestCrash(t *testing.T) {
	t.Parallel()
	total := crashAt(t, 0, false)
	if total < 60 {
		t.Fatalf("a walk has only %d events", total)
	}
	t.Logf("%d events", total)
	for n := 1; n <= total; n += crashStride {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%v", n, keep), func(t *testing.T) {
				t.Parallel()
				crashAt(t, n, keep)
			})
		}
	}
}

func crashAt(t *testing.T, n int, keep bool) int {
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1, GW: 1})
	before := b.vmms()
	total := b.applyDying(n, keep)
	b.want(b.apply(), exitDone)
	b.onTarget("0.1.4")
	b.sameVMMs(before)
	for _, m := range b.fleet.Machines() {
		for _, op := range []string{"install", "stop", "start"} {
			if got := b.jobs(m, op); got != 1 {
				t.Errorf("%s: %d jobs %s", m.Name(), got, op)
			}
		}
	}
	return total
}

// applyDying applies with a journal that dies after n events; 0 lives.
func (b *bench) applyDying(n int, keep bool) int {
	b.t.Helper()
	ctx, end := context.WithCancel(b.t.Context())
	defer end()
	var out, errs bytes.Buffer
	w := b.world(&out, &errs)
	f := &fleetFlags{inventory: []string{b.inv.File}, limit: "all", forks: 50, output: "text"}
	s, err := w.open(f)
	if err != nil {
		b.t.Fatal(err)
	}
	defer s.close()
	p, err := s.prepare(ctx, &targetFlags{debs: []string{b.debs}, to: "0.1.4", serial: 1}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if bad := blocking(p.plan.Findings); len(bad) > 0 {
		b.t.Fatal(bad)
	}
	ctrl, _ := s.ctrl()
	file, err := run.OpenFile(w.stateDir(), p.plan)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var dead atomic.Bool
	total := 0
	fleet := dyingFleet{s.pool, &dead}
	c := s.config(p.plan, nil, nil, run.Past{})
	c.Fleet = fleet
	var ahead atomic.Int64
	c.Now = func() time.Time { // the dead wait for nothing: for them every look at the clock is a day later
		if dead.Load() {
			ahead.Add(24)
		}
		return time.Now().Add(time.Duration(ahead.Load()) * time.Hour)
	}
	c.Journal = &dyingJournal{
		inner: &run.Mirror{File: file, Fleet: fleet, Host: ctrl.Name, Dir: ctrl.Kibo.StateDir, Plan: p.plan, Now: time.Now, Warn: func(error) {}},
		left:  n, keep: keep, dead: &dead, end: end, total: &total,
	}
	if _, err := run.Walk(ctx, c); n == 0 && err != nil {
		b.t.Fatal(err)
	}
	return total
}
