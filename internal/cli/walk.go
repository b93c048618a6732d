package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
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

// walk locks the fleet, keeps the journal here and on ctrl, and walks the plan.
func (s *session) walk(ctx context.Context, p plan.Plan, observe func(run.Event), past run.Past) error {
	ctrl, ok := s.ctrl()
	if !ok {
		return fail(exitUsage, "", "the inventory has no host in group kibo_ctrl: the run's record and lock live there")
	}
	lock, err := run.LockFleet(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir, s.w.User+" run "+p.ID, s.w.Pause)
	if err != nil {
		return err
	}
	defer lock.Release()
	// What was read before the lock was taken may be old: somebody may have begun and died meanwhile.
	id, err := run.Current(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir)
	switch {
	case err != nil:
		return err
	case id != "" && id != p.ID:
		return fail(exitHeld, "kibo-rollout resume "+s.again(), "run %q was begun meanwhile and is not finished: it has to be gone on with first; nothing was changed", id)
	}
	file, err := run.OpenFile(s.w.stateDir(), p.ID)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // every line is synced when written
	mirror := &run.Mirror{
		File: file, Fleet: s.pool, Host: ctrl.Name, Dir: ctrl.Kibo.StateDir, ID: p.ID,
		Warn: func(err error) { _ = s.w.errScreen().Error(err, "") },
	}
	c := s.config(p, observe, mirror, past)
	c.Stop = either(ctx, c.Stop, lock.Gone())
	out, err := run.Walk(ctx, c)
	if err != nil {
		return err
	}
	select {
	case <-lock.Gone():
		if out.Class == run.Interrupted {
			return fail(exitHeld, "kibo-rollout status "+s.again(), "the lock on %s was lost and could not be taken again; stopped at %s: %s; %s",
				ctrl.Name, out.Step, out.Why, out.Left)
		}
	default:
	}
	if out.Class != run.Done {
		return s.stopped(out, "kibo-rollout resume "+s.again())
	}
	return broken(out)
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
			if !p.Same {
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

// again are the inventory flags of this call, to be typed again.
func (s *session) again() string {
	var words []string
	for _, i := range s.f.inventory {
		words = append(words, "-i", i)
	}
	if s.f.user != "" {
		words = append(words, "-u", s.f.user)
	}
	if s.f.key != "" {
		words = append(words, "--private-key", s.f.key)
	}
	return command.Command{Argv: words}.String()
}

// unfinished reads the run that ctrl remembers as not ended.
func (s *session) unfinished(ctx context.Context, a answer) (*run.Record, error) {
	ctrl, ok := s.ctrl()
	if !ok {
		return nil, nil
	}
	for _, h := range a.hosts {
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
		return s.record(ctx, ctrl.Name, ctrl.Kibo.StateDir, id)
	}
	return nil, nil
}

func (s *session) record(ctx context.Context, host, dir, id string) (*run.Record, error) {
	if !plainName(id) {
		return nil, fmt.Errorf("host %s: %q is not the name of a run", host, id)
	}
	conn, err := s.pool.Conn(ctx, host)
	if err != nil {
		return nil, err
	}
	res, err := conn.Run(ctx, command.Command{
		Argv: []string{"cat", filepath.Join(dir, "runs", id, "journal.jsonl")}, Effect: command.Reads,
	})
	if err != nil {
		return nil, err
	}
	if res.Exit != 0 || res.Truncated {
		return nil, fmt.Errorf("cannot read the journal of run %s on %s: exit status %d", id, host, res.Exit)
	}
	rec, err := run.Decode(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("host %s, run %s: %w", host, id, err)
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
