package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

func resumeCmd(w World) *cobra.Command {
	f, t, a := &fleetFlags{}, &targetFlags{}, &applyFlags{}
	c := &cobra.Command{
		Use: "resume", Short: "go on with an unfinished run, from this machine or another", Args: cobra.NoArgs,
		Example: "  kibo-rollout resume -i inventory.yml --debs ./debs",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			return s.resume(c.Context(), t, a, f)
		},
	}
	f.add(c, "text", "json", "jsonl")
	t.add(c)
	a.add(c)
	return c
}

// resume goes on with the run that ctrl remembers. The .debs are needed only where a host has to be given them again.
func (s *session) resume(ctx context.Context, t *targetFlags, a *applyFlags, f *fleetFlags) error {
	s.t = t
	if len(t.debs) > 0 {
		target, agents, err := s.w.targets(t)
		if err != nil {
			return err
		}
		s.debs = append(target.Debs, agents...)
	}
	ans := s.look(ctx, noStage)
	if err := ans.unreachable(); err != nil {
		return err
	}
	rec, err := s.unfinished(ctx, ans)
	if err != nil {
		return err
	}
	if rec == nil {
		return s.w.screen().Line("no run is unfinished")
	}
	return s.goOn(ctx, *rec, ans, a, f)
}

// goOn walks a run's plan again, for the selected hosts: what is done is found done.
func (s *session) goOn(ctx context.Context, rec run.Record, ans answer, a *applyFlags, f *fleetFlags) error {
	old := rec.Plan
	if diff := s.moved(old); diff != "" {
		return fail(exitStale, "", "run %s cannot be gone on with by this inventory: %s; nothing was changed", old.ID, diff)
	}
	selected := map[string]bool{}
	for _, h := range s.hosts {
		selected[h.Name] = true
	}
	p, part := old.For(selected)
	if len(p.Blocks) == 0 {
		return fail(exitUsage, "", "none of the selected hosts is part of run %s", old.ID)
	}
	past := run.PastOf(rec.Events)
	seen := ans.seen()
	seen.Taken = func(record, of string) bool { return past.Taken[record+" "+of] }
	p = p.Unprepared(p.Done(seen))
	if a.check {
		return s.w.screen().Commands(p)
	}
	if f.output == "text" {
		if err := s.w.screen().Line(goingOn(old, p, part)); err != nil {
			return err
		}
	}
	if err := s.confirm(a, "go on with run "+old.ID); err != nil {
		return err
	}
	return s.walk(ctx, p, walking{whole: old, past: past, part: part, observe: s.w.watch(f)})
}

func goingOn(old, p plan.Plan, part bool) string {
	text := fmt.Sprintf("going on with run %s to %s, which was not finished", old.ID, old.Target.Version)
	if part {
		text += fmt.Sprintf(" (%d of its %d blocks, on the selected hosts)", len(p.Blocks), len(old.Blocks))
	}
	return text
}

// moved says in words where the inventory means other machines than the run's plan did, or "".
func (s *session) moved(old plan.Plan) string {
	for _, o := range old.Hosts {
		i := slices.IndexFunc(s.all, func(h inventory.Host) bool { return h.Name == o.Name })
		if i < 0 {
			return "it has no host " + o.Name
		}
		h := s.all[i]
		switch {
		case h.Login.Address != o.Address:
			return fmt.Sprintf("host %s is at %s, and was at %s", o.Name, h.Login.Address, o.Address)
		case !slices.Equal(h.Parts, o.Parts):
			return fmt.Sprintf("host %s runs %v, and ran %v", o.Name, h.Parts, o.Parts)
		case o.NodeName != "" && h.Kibo.NodeName != o.NodeName:
			return fmt.Sprintf("host %s is node %s, and was %s", o.Name, h.Kibo.NodeName, o.NodeName)
		}
	}
	return ""
}
