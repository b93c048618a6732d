package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// applyFlags say how a walk is confirmed and shown.
type applyFlags struct {
	yes   bool
	check bool
}

func (a *applyFlags) add(c *cobra.Command) {
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVarP(&a.check, "check", "C", false, "print the very commands, and run none of them")
}

func applyCmd(w World) *cobra.Command {
	f, t, a := &fleetFlags{}, &targetFlags{}, &applyFlags{}
	c := &cobra.Command{
		Use: "apply [PLAN]", Short: "walk the upgrade (without PLAN: plan it first)", Args: cobra.MaximumNArgs(1),
		Example: "  kibo-rollout apply -i inventory.yml --debs ./debs --to 0.1.4\n" +
			"  kibo-rollout plan -i inventory.yml --debs ./debs --output json > plan.json && kibo-rollout apply plan.json -i inventory.yml --debs ./debs",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := s.prepare(c.Context(), t, w.staging(f))
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if err := p.approve(args[0]); err != nil {
					return err
				}
			}
			return s.apply(c.Context(), p, a, f)
		},
	}
	f.add(c, "text", "json", "jsonl")
	t.add(c)
	a.add(c)
	return c
}

// apply shows the plan, asks, and walks it. An unfinished run to the same target is gone on with.
func (s *session) apply(ctx context.Context, p *prepared, a *applyFlags, f *fleetFlags) error {
	if p.unfinished != nil {
		return s.goOn(ctx, *p.unfinished, p.answer, a, f)
	}
	if len(p.left) == 0 {
		return s.w.nothing(f, p.plan.Target.Version)
	}
	if f.output == "text" {
		if err := s.w.showPlan(f, p); err != nil {
			return err
		}
	}
	if err := p.verdict(false); err != nil {
		return s.abandon(ctx, p, err)
	}
	if a.check {
		return s.w.screen().Commands(p.plan)
	}
	if err := s.confirm(a, "apply this plan"); err != nil {
		return err
	}
	return s.walk(ctx, p.plan, walking{whole: p.plan, observe: s.w.watch(f)})
}

// abandon removes the staging directories of a plan that is not going to be walked (K11).
func (s *session) abandon(ctx context.Context, p *prepared, why error) error {
	if err := s.clean(ctx, p); err != nil {
		return fmt.Errorf("%w; and the staging directories are left: %w", why, err)
	}
	return why
}

// clean removes the staging directories that this very call made, under the fleet's lock: another's walk may be using what was
// there before, and a run that is not finished needs it.
func (s *session) clean(ctx context.Context, p *prepared) error {
	only := p.plan
	only.Blocks, only.Clean = nil, nil
	for _, b := range p.plan.Clean {
		if p.staged[b.Host] && p.unfinished == nil {
			only.Blocks = append(only.Blocks, b)
		}
	}
	ctrl, ok := s.ctrl()
	if len(only.Blocks) == 0 || !ok {
		return nil
	}
	lock, err := s.lock(ctx, ctrl, p.plan.ID)
	if codeOf(err) == exitHeld {
		return s.w.errScreen().Line("note: the staging directories stay, because another run holds the fleet")
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	out, err := run.Walk(ctx, s.config(only, nil, nil, run.Past{}))
	if err != nil {
		return err
	}
	if out.Class != run.Done {
		return s.stopped(out, "")
	}
	return nil
}

func (w World) nothing(f *fleetFlags, version string) error {
	if f.output != "text" {
		return view.JSONLine(w.Out, map[string]any{"kind": "nothing-to-do", "version": version, "changed": false})
	}
	return w.screen().Line("nothing to do: every host is on " + version)
}

// watch shows a walk: people on standard output, programs one event a line.
func (w World) watch(f *fleetFlags) func(run.Event) {
	if f.output != "text" {
		return view.JSONEvents{Out: w.Out}.Observe
	}
	screen := w.screen()
	screen.Verbose = f.verbose > 0
	return screen.Events().Observe
}

// approve holds a plan that was made before against what was found now: anything else than less work is a stale plan.
func (p *prepared) approve(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fail(exitUsage, "", "cannot read the plan: %w", err)
	}
	var old plan.Plan
	if err := json.Unmarshal(data, &old); err != nil {
		return fail(exitUsage, "kibo-rollout plan --output json > plan.json", "%s is no plan: %w", file, err)
	}
	if old.Schema != plan.Schema {
		return fail(exitUsage, "kibo-rollout plan --output json > plan.json", "%s has schema %d, this program writes %d", file, old.Schema, plan.Schema)
	}
	if diff := plan.Stale(old, p.plan); diff != "" {
		return fail(exitStale, "kibo-rollout plan --output json > plan.json", "%s is stale: %s; nothing was changed", file, diff)
	}
	p.plan = old
	return nil
}

// confirm asks on a terminal; elsewhere --yes is needed.
func (s *session) confirm(a *applyFlags, what string) error {
	if a.yes {
		return nil
	}
	if !s.w.terminal() {
		return fail(exitUsage, "", "cannot ask whether to %s: no terminal; give --yes", what)
	}
	_, _ = fmt.Fprintf(s.w.Err, "%s? Type yes: ", what)
	line, err := bufio.NewReader(s.w.In).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "yes" {
		return fail(exitInterrupted, "", "not confirmed; nothing was changed but the staging directories")
	}
	return nil
}
