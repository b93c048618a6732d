package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/run"
)

func planCmd(w World) *cobra.Command {
	f, t := &fleetFlags{}, &targetFlags{}
	detailed := false
	c := &cobra.Command{
		Use: "plan", Short: "say what an upgrade would do; changes nothing but the staging directories", Args: cobra.NoArgs,
		Example: "  kibo-rollout plan -i inventory.yml --debs ./debs --to 0.1.4",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := s.prepare(c.Context(), t, w.staging(f))
			if err != nil {
				return err
			}
			if err := w.showPlan(f, p); err != nil {
				return err
			}
			if err := p.verdict(detailed); err != nil || len(p.left) == 0 {
				return err
			}
			return w.errScreen().Next(p.next(s))
		},
	}
	f.add(c, "text", "json")
	t.add(c)
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, fmt.Sprintf("end with %d when there are changes", exitChanges))
	return c
}

// staging shows how the plan's own staging goes, on standard error.
func (w World) staging(f *fleetFlags) func(run.Event) {
	screen := w.errScreen()
	screen.Verbose = f.verbose > 0
	ev := screen.Events()
	return func(e run.Event) {
		switch e.Kind {
		case run.StepStarted, run.StepDone, run.Progress, run.Command:
			ev.Observe(e)
		default: // the frame of a walk: there is no run yet
		}
	}
}

func (w World) showPlan(f *fleetFlags, p *prepared) error {
	if f.output == "json" {
		return view.JSON(w.Out, p.plan)
	}
	screen := w.screen()
	screen.Verbose = f.verbose > 0
	if len(p.left) == 0 {
		return screen.Line("nothing to do: every host is on " + p.plan.Target.Version)
	}
	if err := screen.Plan(p.plan); err != nil || p.unfinished == nil {
		return err
	}
	return screen.Line("run " + p.unfinished.Plan.ID + " to " + p.unfinished.Plan.Target.Version +
		" is not finished: apply goes on with that one, not with this plan")
}

// next is what goes on from a plan: the run that is unfinished, or this plan.
func (p *prepared) next(s *session) string {
	if p.unfinished != nil {
		return "kibo-rollout resume " + s.again()
	}
	return "kibo-rollout apply " + s.again()
}

// verdict is how plan ends: blockers first, then whether there is anything to do.
func (p *prepared) verdict(detailed bool) error {
	if n := len(blocking(p.plan.Findings)); n > 0 && len(p.left) > 0 {
		return fail(exitBlocked, "", "%d findings block the upgrade (see above); nothing was stopped, the staging directories stay for the next plan", n)
	}
	if len(p.left) == 0 {
		return nil
	}
	if detailed {
		return &exit{code: exitChanges, err: fmt.Errorf("there are changes"), quiet: true}
	}
	return nil
}

func checkCmd(w World) *cobra.Command {
	f, t := &fleetFlags{}, &targetFlags{}
	c := &cobra.Command{
		Use: "check", Short: "previews and preflight only: can the target take over?", Args: cobra.NoArgs,
		Example: "  kibo-rollout check -i inventory.yml --debs ./debs --to 0.1.4",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := s.prepare(c.Context(), t, w.staging(f))
			if err != nil {
				return err
			}
			if err := s.clean(c.Context(), p); err != nil {
				return err
			}
			if err := w.showFindings(f, p.plan.Findings); err != nil {
				return err
			}
			return p.verdict(false)
		},
	}
	f.add(c, "text", "json")
	t.add(c)
	return c
}

func (w World) showFindings(f *fleetFlags, findings []checks.Finding) error {
	if f.output == "json" {
		return view.JSON(w.Out, findings)
	}
	screen := w.screen()
	screen.Verbose = f.verbose > 0
	return screen.Findings(findings)
}
