package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/run"
)

func abandonCmd(w World) *cobra.Command {
	f, a := &fleetFlags{}, &applyFlags{}
	c := &cobra.Command{
		Use: "abandon", Short: "give up an unfinished run: close its windows, remove its staging, say what it leaves", Args: cobra.NoArgs,
		Long: "abandon ends a run that is not going to be gone on with, for example because its target turned out to be bad. It closes the\n" +
			"windows that the run opened and removes its staging directories. Nodes that the run drained stay drained, since nobody knows\n" +
			"here whether they may take Workspaces again: they are named, with the command that ends each drain.",
		Example: "  kibo-rollout abandon -i inventory.yml",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			return s.abandonRun(c.Context(), a)
		},
	}
	f.add(c)
	a.add(c)
	return c
}

// abandonRun gives back what an unfinished run took, as far as its hosts answer, and ends it.
func (s *session) abandonRun(ctx context.Context, a *applyFlags) error {
	ans := s.look(ctx, noStage)
	ctrl, ok := s.ctrl()
	if !ok {
		return fail(exitUsage, "", "the inventory has no host in group kibo_ctrl: runs are recorded there")
	}
	rec, err := s.unfinished(ctx, ans)
	if err != nil {
		return err
	}
	if rec == nil {
		if err := ans.unreachable(); err != nil {
			return err
		}
		return s.w.screen().Line("no run is unfinished")
	}
	if err := s.confirm(a, "abandon run "+rec.Plan.ID); err != nil {
		return err
	}
	lock, err := s.lock(ctx, ctrl, rec.Plan.ID)
	if err != nil {
		return err
	}
	defer lock.Release()
	past := run.PastOf(rec.Events)
	failed := s.giveBack(ctx, rec.Plan, past)
	if err := s.endRecord(ctx, ctrl, *rec, past); err != nil {
		return err
	}
	if err := s.drainsLeft(ctrl, past); err != nil {
		return err
	}
	if failed != nil {
		return &exit{code: exitUnreachable, err: fmt.Errorf("run %s is abandoned, but not everything could be given back: %w", rec.Plan.ID, failed)}
	}
	return s.w.screen().Line("run " + rec.Plan.ID + " is abandoned")
}

// giveBack closes the run's windows and removes its staging on every host that answers; windows elsewhere end by themselves.
func (s *session) giveBack(ctx context.Context, p plan.Plan, past run.Past) error {
	var errs []error
	for _, h := range p.Hosts {
		b := command.Batch{}
		for _, blk := range p.Blocks {
			for _, st := range blk.Finally {
				for _, act := range st.Act {
					if act.Verb == plan.Revoke && act.Host == h.Name && past.Taken[plan.RecordWindow+" "+h.Name] {
						b.Commands = append(b.Commands, act.Command)
					}
				}
			}
		}
		for _, blk := range p.Clean {
			for _, st := range blk.Steps {
				for _, act := range st.Act {
					if act.Host == h.Name {
						b.Commands = append(b.Commands, act.Command)
					}
				}
			}
		}
		if len(b.Commands) == 0 {
			continue
		}
		if _, err := s.batch(ctx, h.Name, b); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// endRecord writes the end of the run into its journal, here and on ctrl.
func (s *session) endRecord(ctx context.Context, ctrl inventory.Host, rec run.Record, past run.Past) error {
	file, err := run.OpenFile(s.w.stateDir(), rec.Plan)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // every line is synced when written
	var copied error
	m := s.mirror(file, ctrl, walking{whole: rec.Plan})
	m.Warn = func(err error) { copied = err }
	e := run.Event{Seq: past.Seq + 1, Time: s.w.Now().UTC(), Run: rec.Plan.ID, Kind: run.RunAbandoned, Text: "abandoned by " + s.w.User}
	if err := m.Append(ctx, e, true); err != nil {
		return err
	}
	return copied
}

// drainsLeft names the nodes that the run leaves drained.
func (s *session) drainsLeft(ctrl inventory.Host, past run.Past) error {
	_, argv := s.cli()
	for _, h := range s.all {
		node := h.Kibo.NodeName
		if !past.Taken[plan.RecordDrain+" "+node] {
			continue
		}
		words := append(append([]string{}, argv...), "node", "cancel-drain", node)
		text := fmt.Sprintf("node %s stays drained; when it may take Workspaces again, on %s: %s", node, ctrl.Name, strings.Join(words, " "))
		if err := s.w.screen().Line(text); err != nil {
			return err
		}
	}
	return nil
}
