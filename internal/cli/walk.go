package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/run"
)

// config is what a walk of a plan gets from this session.
func (s *session) config(p plan.Plan, observe func(run.Event), j run.Journal, past run.Past) run.Config {
	cliHost, argv := s.cli()
	wants := map[string]checks.Want{}
	stages := map[string]string{}
	for _, h := range p.Hosts {
		stages[h.Name] = h.StageDir
	}
	for _, h := range s.all {
		if dir, ok := stages[h.Name]; ok {
			wants[h.Name] = s.want(h, dir)
		}
	}
	c := run.Config{
		Plan: p, Fleet: s.pool, Wants: wants, CLIHost: cliHost, Nodes: checks.NodesCommand(argv), Source: s.source,
		Journal: j, Observe: observe, Stop: s.w.Stop, Now: s.w.Now, Pause: s.w.Pause, Past: past, Forks: s.f.forks,
	}
	if ctrl, ok := s.ctrl(); ok {
		c.Settle = run.Question{Host: ctrl.Name, Command: plan.UnfinishedCommand(ctrl)}
	}
	return c
}

// walking is what a walk of a whole run needs besides the plan.
type walking struct {
	whole   plan.Plan // as it is kept in the record
	past    run.Past
	part    bool // hosts of the plan were left out
	observe func(run.Event)
}

// walk locks the fleet, keeps the journal here and on ctrl, and walks the plan.
func (s *session) walk(ctx context.Context, p plan.Plan, g walking) error {
	ctrl, ok := s.ctrl()
	if !ok {
		return fail(exitUsage, "", "the inventory has no host in group kibo_ctrl: the run's record and lock live there")
	}
	lock, err := s.lock(ctx, ctrl, p.ID)
	if err != nil {
		return err
	}
	defer lock.Release()
	file, err := run.OpenFile(s.w.stateDir(), g.whole)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // every line is synced when written
	c := s.config(p, g.observe, s.mirror(file, ctrl, g), g.past)
	c.Part = g.part
	c.Stop = either(ctx, c.Stop, lock.Gone())
	out, err := run.Walk(ctx, c)
	if err != nil {
		return err
	}
	return s.ended(out, ctrl.Name, lock, g.part)
}

func (s *session) mirror(file *run.File, ctrl inventory.Host, g walking) *run.Mirror {
	return &run.Mirror{
		File: file, Fleet: s.pool, Host: ctrl.Name, Dir: ctrl.Kibo.StateDir, Plan: g.whole, Keep: g.part, Now: s.w.Now,
		Warn: func(err error) { _ = s.w.errScreen().Error(err, "") },
	}
}

// lock takes the fleet's lock and looks under it for a run that somebody began and left meanwhile.
func (s *session) lock(ctx context.Context, ctrl inventory.Host, id string) (*run.FleetLock, error) {
	lock, err := run.LockFleet(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir, s.w.User+" run "+id, s.w.Pause)
	if err != nil {
		return nil, err
	}
	other, err := run.Current(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir)
	if err == nil && other != "" && other != id {
		err = fail(exitHeld, "kibo-rollout resume "+s.again(), "run %q was begun meanwhile and is not finished: it has to be gone on with first; nothing was changed", other)
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// ended makes the exit of a walk's outcome.
func (s *session) ended(out run.Outcome, ctrl string, lock *run.FleetLock, part bool) error {
	select {
	case <-lock.Gone():
		if out.Class == run.Interrupted {
			return fail(exitHeld, "kibo-rollout status "+s.again(), "the lock on %s was lost and could not be taken again; stopped at %s: %s; %s",
				ctrl, out.Step, out.Why, out.Left)
		}
	default:
	}
	if out.Class != run.Done {
		return s.stopped(out, "kibo-rollout resume "+s.again())
	}
	if err := broken(out); err != nil {
		return err
	}
	if part {
		return fail(exitStopped, "kibo-rollout resume, with the other hosts selected too", "the selected hosts are done; the run has others left")
	}
	return nil
}

// either is closed when one of both is: the operator asks to stop, or the fleet's lock is lost for good.
func either(ctx context.Context, a, b <-chan struct{}) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		select {
		case <-a:
		case <-b:
		case <-ctx.Done():
			return
		}
		close(out)
	}()
	return out
}

// broken refuses to call a run done in which a VM is not the process it was (K41).
func broken(out run.Outcome) error {
	for host, proofs := range out.Proofs {
		for _, p := range proofs {
			if !p.Same && !p.Ended {
				return fail(exitStopped, "", "on %s, %s was %s and is %s: a VM was lost or restarted", host, p.Unit, p.Before, p.After)
			}
		}
	}
	return nil
}

// stopped makes the one error of a walk that did not come to its end.
func (s *session) stopped(out run.Outcome, next string) error {
	where := out.Step
	if where == "" {
		where = out.Block
	}
	text := strings.TrimSpace(where + ": " + out.Why)
	if out.Left != "" {
		text += "; " + out.Left
	}
	if out.Next != "" {
		next = out.Next
	}
	return &exit{code: classCode(out.Class), err: errors.New(text), next: next}
}

// again are the flags of this call, to be typed again. Passwords are not among them: they never were words.
func (s *session) again() string { return s.f.again(s.t) }

// unfinished reads the run that ctrl remembers as not ended, whatever hosts are selected.
func (s *session) unfinished(ctx context.Context, a answer) (*run.Record, error) {
	ctrl, ok := s.ctrl()
	if !ok {
		return nil, nil
	}
	for _, h := range slices.Concat(a.hosts, a.more) {
		if h.host.Name != ctrl.Name || h.err != nil {
			continue
		}
		id, err := h.facts.Runs.Get()
		if err != nil {
			return nil, fmt.Errorf("cannot tell whether a run is unfinished on %s: %w", ctrl.Name, err)
		}
		if id == "" {
			return nil, nil
		}
		return s.record(ctx, ctrl, id)
	}
	return nil, nil
}

func (s *session) record(ctx context.Context, ctrl inventory.Host, id string) (*run.Record, error) {
	if !plainName(id) {
		return nil, fmt.Errorf("host %s: %q is not the name of a run", ctrl.Name, id)
	}
	rec, err := run.ReadRecord(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir, id, s.w.stateDir())
	if err != nil {
		return nil, fail(exitError, "", "%w; look at %s/runs/%s on %s: without it nothing tells what the run took", err, ctrl.Kibo.StateDir, id, ctrl.Name)
	}
	if rec.Cut > 0 {
		_ = s.w.errScreen().Line(fmt.Sprintf("note: %d lines of the journal of run %s cannot be read and are left out", rec.Cut, id))
	}
	return &rec, nil
}

func plainName(id string) bool {
	return id != "" && len(id) <= 100 && !strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

func nextOf(err error) string {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Next
	}
	return ""
}
