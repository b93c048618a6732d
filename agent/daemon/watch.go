// Package daemon watches a host's gate without polling: the allow-file and the holds by inotify, logind's locks
// by its signals, the next beginning or end of a window by one timer on the host's clock. Nothing else in the
// agent needs it: every other command judges afresh by itself (Z5).
package daemon

import (
	"context"
	"errors"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// settle gathers changes that come together, such as a file's new owner and its new name, into one look.
const settle = 10 * time.Millisecond

// Watcher tells a host's answer and every change of it.
type Watcher struct {
	Dir   string // of the allow-file, normally /var/lib/kibo-agent
	Holds string // normally gate.HoldsPath
	Bus   string // normally Bus
	Dpkg  string // directory of dpkg's list, to look when packages change; "": not watched
	Now   func() time.Time
	// Look asks for the host's answer now: gate, holds and inhibitors. Layers and jobs are not looked at.
	Look func(context.Context) gate.Status
}

// Run calls each with the answer now and then with every answer that differs from the one before, until ctx
// ends or each fails. What it cannot watch is an error: it never pretends that nothing changes.
func (w Watcher) Run(ctx context.Context, each func(gate.Status) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found, err := watchFiles(w.Dir, w.Holds, w.Dpkg)
	if err != nil {
		return err
	}
	clock, err := newAlarm()
	if err != nil {
		return errors.Join(err, found.inbox.Close())
	}
	edges := make(chan struct{}, 1)
	edge := func() {
		select {
		case edges <- struct{}{}:
		default: // one is waiting already
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return found.run(ctx, edge) })
	group.Go(func() error { return clock.run(ctx, edge) })
	group.Go(func() error { logind{w.Bus}.run(ctx, edge); return nil })
	group.Go(func() error {
		defer cancel()
		return w.follow(ctx, clock, edges, each)
	})
	return group.Wait()
}

// follow looks at every edge. The first look comes after the sources have begun, so nothing falls between.
func (w Watcher) follow(ctx context.Context, clock *alarm, edges <-chan struct{}, each func(gate.Status) error) error {
	var last *gate.Status
	for {
		s := w.Look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if last == nil || !same(*last, s) {
			if err := each(s); err != nil {
				return err
			}
			last = &s
		}
		if err := clock.set(next(w.Now(), uptime(), s)); err != nil {
			if ctx.Err() != nil { // it was closed because the watch ends
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-edges:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
	}
}

// same reports whether two answers say the same. A reason that tells the time differs by the second; while the
// file and the code are the same, that is no change.
func same(a, b gate.Status) bool {
	a.Reason, b.Reason = "", ""
	return reflect.DeepEqual(a, b)
}

// next is when the answer changes by itself: the beginning or the end of the window. Zero is never.
func next(now time.Time, up time.Duration, s gate.Status) time.Time {
	if s.Window == nil {
		return time.Time{}
	}
	moments := []time.Time{time.Unix(s.Window.NotBefore, 0), time.Unix(s.Window.NotAfter, 0)}
	if s.Window.BootID != "" {
		moments = append(moments, now.Add(time.Duration(s.Window.BootUntil)*time.Second-up))
	}
	var first time.Time
	for _, m := range moments {
		if m.After(now) && (first.IsZero() || m.Before(first)) {
			first = m
		}
	}
	return first
}

// uptime is the time since boot by the clock that nobody can set.
func uptime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
