package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/run"
)

// TestTwoOperators: while one run holds the fleet, another is refused by the first one's name, and nothing is changed.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.session()
	lock, err := run.LockFleet(t.Context(), s.pool, "ctrl-1", "/var/lib/kibo-rollout", "ben@laptop run r-1", s.w.Pause)
	if err != nil {
		t.Fatal(err)
	}
	b.want(b.apply(), exitHeld, "ben@laptop run r-1")
	if pkg, _ := b.machine("ctrl-1").Installed("kibotos-ctrl"); pkg.Version != "0.1.2" {
		t.Errorf("ctrl was touched: %s", pkg.Version)
	}
	lock.Release()
	b.want(b.apply(), exitDone)
}

// TestLockComesBack: a lock whose connection was cut is taken again; one that somebody else took meanwhile is gone.
func TestLockComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.session()
	lock, err := run.LockFleet(t.Context(), s.pool, "ctrl-1", "/var/lib/kibo-rollout", "ann", s.w.Pause)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	m := b.machine("ctrl-1")
	execs := m.Stats().Execs
	m.DropConnections()
	for m.Stats().Execs < execs+2 { // the directory, the lock
		if t.Context().Err() != nil {
			t.Fatal("the lock was not asked for again")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond) // the lock is being taken
	if _, err := run.LockFleet(t.Context(), b.session().pool, "ctrl-1", "/var/lib/kibo-rollout", "ben", s.w.Pause); !errors.Is(err, run.ErrHeld) {
		t.Errorf("the lock was not taken again: %v", err)
	}
	select {
	case <-lock.Gone():
		t.Error("the lock counts as lost")
	default:
	}
}

// TestUnfinishedMeanwhile: a run that was begun and left between plan and lock is not run over.
func TestUnfinishedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
	s := b.session()
	p, err := s.prepare(t.Context(), &targetFlags{debs: []string{b.debs}, serial: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.machine("ctrl-1").Place("/var/lib/kibo-rollout/runs/current", "r-20260101-000000-abcdef\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.walk(t.Context(), p.plan, walking{whole: p.plan}); codeOf(err) != exitHeld {
		t.Errorf("walked all the same: %v", err)
	}
}
