package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

func agentCmd(w World) *cobra.Command {
	c := &cobra.Command{Use: "agent", Short: "kibo-agent on the hosts: the gate's keeper"}
	c.AddCommand(agentInstallCmd(w), agentStatusCmd(w))
	return c
}

func agentInstallCmd(w World) *cobra.Command {
	f, a := &fleetFlags{}, &applyFlags{}
	var debs []string
	c := &cobra.Command{
		Use: "install", Short: "install kibo-agent where it is missing or older", Args: cobra.NoArgs,
		Example: "  kibo-rollout agent install -i inventory.yml --agent-deb ./kibo-agent_0.1.0_amd64.deb",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			return s.installAgent(c.Context(), debs, a, f)
		},
	}
	f.add(c, "text", "json", "jsonl")
	a.add(c)
	c.Flags().StringArrayVar(&debs, "agent-deb", nil, "kibo-agent's .deb, or a directory with it; default: beside this program")
	return c
}

func (s *session) installAgent(ctx context.Context, said []string, a *applyFlags, f *fleetFlags) error {
	debs, err := s.w.agentDebs(said, besideProgram())
	if err != nil {
		return err
	}
	if len(debs) == 0 {
		return fail(exitUsage, "kibo-rollout agent install --agent-deb FILE", "kibo-agent's package is not beside this program")
	}
	if err := s.nobodyWalks(ctx, "leave the agent to it"); err != nil {
		return err
	}
	ans := s.look(ctx, noStage)
	if err := ans.unreachable(); err != nil {
		return err
	}
	id, err := newID(s.w)
	if err != nil {
		return err
	}
	in := plan.Input{ID: id, By: s.w.User, Mode: plan.Agents, Why: "the agent alone: no part is touched", AgentDebs: debs}
	for _, h := range ans.hosts {
		in.Hosts = append(in.Hosts, plan.HostInput{Host: h.host, Facts: h.facts})
	}
	p, err := plan.Agent(in)
	if err != nil {
		return fail(exitUsage, "", "%w; nothing was changed", err)
	}
	if len(p.Blocks) == 0 {
		return s.w.screen().Line("nothing to do: every host has kibo-agent " + debs[0].Version)
	}
	if a.check {
		return s.w.screen().Commands(p)
	}
	if err := s.confirm(a, fmt.Sprintf("install kibo-agent %s on %d hosts", debs[0].Version, len(p.Blocks))); err != nil {
		return err
	}
	s.debs = debs
	out, err := run.Walk(ctx, s.config(p, s.w.watch(f), nil, run.Past{}))
	if err != nil {
		return err
	}
	if out.Class != run.Done {
		return s.stopped(out, "kibo-rollout agent install "+s.again())
	}
	return nil
}

// agentState is the agent on one host.
type agentState struct {
	Host    string `json:"host"`
	Version string `json:"version,omitempty"`
	Gate    string `json:"gate,omitempty"` // "active" when every layer is
	Problem string `json:"problem,omitempty"`
}

func agentStatusCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "status", Short: "where kibo-agent is, and whether its layers are really active", Args: cobra.NoArgs,
		Example: "  kibo-rollout agent status -i inventory.yml",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			ans := s.look(c.Context(), noStage)
			states := make([]agentState, 0, len(ans.hosts))
			for _, h := range ans.hosts {
				states = append(states, agentStateOf(h))
			}
			if err := w.showAgents(f, states); err != nil {
				return err
			}
			return ans.unreachable()
		},
	}
	f.add(c, "text", "json")
	return c
}

func agentStateOf(h state) agentState {
	out := agentState{Host: h.host.Name}
	if h.err != nil {
		out.Problem = h.err.Error()
		return out
	}
	st, err := h.facts.Agent.Get()
	switch {
	case errors.Is(err, checks.ErrNoAgent):
		out.Problem = "not installed"
		return out
	case err != nil:
		out.Problem = err.Error()
		return out
	}
	out.Version, out.Gate = st.Version, "active"
	for _, l := range st.Layers {
		if !l.Active {
			out.Gate = "inactive"
			out.Problem = "layer " + l.Name + ": " + l.Reason
		}
	}
	return out
}

func (w World) showAgents(f *fleetFlags, states []agentState) error {
	if f.output == "json" {
		return view.JSON(w.Out, states)
	}
	screen := w.screen()
	for _, a := range states {
		text := fmt.Sprintf("%s  %s  %s  %s", a.Host, dash(a.Version), dash(a.Gate), a.Problem)
		if err := screen.Line(text); err != nil {
			return err
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
