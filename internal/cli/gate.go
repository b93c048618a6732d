package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/run"
)

func gateCmd(w World) *cobra.Command {
	c := &cobra.Command{Use: "gate", Short: "open, close and look at the hosts' windows"}
	c.AddCommand(gateAllowCmd(w), gateCloseCmd(w), gateStatusCmd(w), gateHoldCmd(w), gateReleaseCmd(w))
	return c
}

// windowFlags say what a window permits.
type windowFlags struct {
	length     time.Duration
	until      string
	once       bool
	operations []string
	packages   []string
	reason     string
	force      bool
}

func gateAllowCmd(w World) *cobra.Command {
	f, g := &fleetFlags{}, &windowFlags{}
	c := &cobra.Command{
		Use: "allow (--for DURATION | --until TIME)", Short: "open a window on every selected host, from now", Args: cobra.NoArgs,
		Example: "  kibo-rollout gate allow -i inventory.yml --limit node-a --for 30m --package kibotos-node=0.1.4 --reason 'by hand'",
		RunE: func(c *cobra.Command, _ []string) error {
			cmd, err := g.command(w)
			if err != nil {
				return err
			}
			return w.gateEach(c.Context(), f, cmd, "open", g.force)
		},
	}
	f.add(c, "text", "json")
	fs := c.Flags()
	fs.DurationVar(&g.length, "for", 0, "how long, counted by each host's own clock")
	fs.StringVar(&g.until, "until", "", "end: RFC 3339 with an offset, such as 2026-01-31T02:30:00+01:00")
	fs.BoolVar(&g.once, "once", false, "one operation only")
	fs.StringArrayVar(&g.operations, "operation", nil, "only this operation: install, remove, stop, start … (repeatable)")
	fs.StringArrayVar(&g.packages, "package", nil, "only this package at this Debian version: NAME=VERSION (repeatable)")
	fs.BoolVar(&g.force, "force", false, "also while a run holds the fleet, whose windows this replaces")
	fs.StringVar(&g.reason, "reason", "", "why, for whoever looks at the host")
	return c
}

// command checks the flags before any host is asked: a window is never guessed at.
func (g *windowFlags) command(w World) (command.Command, error) {
	if (g.length > 0) == (g.until != "") {
		return command.Command{}, fail(exitUsage, "kibo-rollout gate allow --for 30m", "say how long the window is: --for or --until, one of them")
	}
	packages := map[string]string{}
	for _, p := range g.packages {
		name, version, ok := strings.Cut(p, "=")
		if !ok || name == "" || version == "" {
			return command.Command{}, fail(exitUsage, "", "--package %q is not NAME=VERSION", p)
		}
		packages[name] = version
	}
	win := plan.Window{
		ID: "gate-" + w.Now().UTC().Format("20060102-150405"), For: g.length, Operations: g.operations, Packages: packages,
		Once: g.once, By: w.User, Reason: g.reason,
	}
	if g.until != "" {
		end, err := time.Parse(time.RFC3339, g.until)
		if err != nil {
			return command.Command{}, fail(exitUsage, "", "--until %q is not RFC 3339 with an offset (2026-01-31T02:30:00+01:00): a bare time means another moment on another machine", g.until)
		}
		if !end.After(w.Now()) {
			return command.Command{}, fail(exitUsage, "", "--until %s is over", end.Format(time.RFC3339))
		}
		win.Until = end
	}
	return plan.AllowCommand(win), nil
}

func gateCloseCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "close", Short: "take the window away on every selected host", Args: cobra.NoArgs,
		Example: "  kibo-rollout gate close -i inventory.yml",
		RunE: func(c *cobra.Command, _ []string) error {
			return w.gateEach(c.Context(), f, plan.CloseCommand(""), "closed", true)
		},
	}
	f.add(c, "text", "json")
	return c
}

func gateStatusCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "status", Short: "what each host's gate permits now, and why", Args: cobra.NoArgs,
		Example: "  kibo-rollout gate status -i inventory.yml",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			ans := s.look(c.Context(), noStage)
			st := view.NewStatus(machines(ans), ans.nodes)
			if f.output == "json" {
				err = view.JSON(w.Out, st)
			} else {
				err = w.screen().Gates(st)
			}
			if err != nil {
				return err
			}
			return ans.unreachable()
		},
	}
	f.add(c, "text", "json")
	return c
}

// gateAnswer is what one host's agent said.
type gateAnswer struct {
	Host   string          `json:"host"`
	OK     bool            `json:"ok"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
	err    error
}

// gateEach runs one gate command on every selected host; a host that cannot be asked does not keep the others from it.
func (w World) gateEach(ctx context.Context, f *fleetFlags, c command.Command, done string, force bool) error {
	s, err := w.open(f)
	if err != nil {
		return err
	}
	defer s.close()
	if !force {
		if err := s.nobodyWalks(ctx, "--force to replace that run's windows all the same"); err != nil {
			return err
		}
	}
	answers := make([]gateAnswer, len(s.hosts))
	var wg sync.WaitGroup
	for i, h := range s.hosts {
		wg.Go(func() { answers[i] = s.gateOne(ctx, h.Name, c) })
	}
	wg.Wait()
	if f.output == "json" {
		err = view.JSON(w.Out, answers)
	} else {
		err = w.gateLines(answers, done)
	}
	if err != nil {
		return err
	}
	return gateErr(answers)
}

// nobodyWalks refuses while a run holds the fleet: a host has one allow-file, and the run's would be replaced.
func (s *session) nobodyWalks(ctx context.Context, way string) error {
	ctrl, ok := s.ctrl()
	if !ok {
		return nil
	}
	who, err := run.Holder(ctx, s.pool, ctrl.Name, ctrl.Kibo.StateDir)
	switch {
	case err != nil:
		return err
	case who != "":
		return fail(exitHeld, "wait for it to end, or "+way, "another run holds the fleet: %s; nothing was changed", who)
	}
	return nil
}

func (s *session) gateOne(ctx context.Context, host string, c command.Command) gateAnswer {
	out := gateAnswer{Host: host}
	res, err := s.batch(ctx, host, command.Batch{Commands: []command.Command{c}})
	switch {
	case err != nil:
		out.err = err
	case res[0].Exit == 127:
		out.err = errors.New("kibo-agent is not installed")
	case res[0].Exit != 0:
		out.err = fmt.Errorf("exit status %d: %s", res[0].Exit, strings.TrimSpace(string(res[0].Stderr)))
	case !json.Valid(res[0].Stdout):
		out.err = errors.New("the agent's answer is no JSON")
	default:
		out.OK, out.Answer = true, res[0].Stdout
	}
	if out.err != nil {
		out.Error = out.err.Error()
	}
	return out
}

func (w World) gateLines(answers []gateAnswer, done string) error {
	screen := w.screen()
	for _, a := range answers {
		text := a.Host + "  " + done
		if !a.OK {
			text = a.Host + "  failed: " + a.Error
		}
		if err := screen.Line(text); err != nil {
			return err
		}
	}
	return nil
}

func gateErr(answers []gateAnswer) error {
	n := 0
	var first error
	for _, a := range answers {
		if a.OK {
			continue
		}
		if n++; first == nil {
			first = a.err
		}
	}
	if n == 0 {
		return nil
	}
	return &exit{code: codeOf(first), err: fmt.Errorf("%d of %d hosts: %w", n, len(answers), first), next: nextOf(first)}
}
