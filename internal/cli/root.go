// Package cli is the command line of kibo-rollout: flags to options, one call, then rendering. Commands are thin.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/view"
)

// World is everything from outside that the commands use.
type World struct {
	Version string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Env     func(string) string
	Now     func() time.Time
	Pause   func(context.Context, time.Duration)
	Stop    <-chan struct{} // closed when the operator asks to stop: finish the current command, then stop
	Home    string          // the operator's home directory
	User    string          // who asks, "name@host"
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, w World, args []string) int {
	root := newRoot(w)
	root.SetArgs(args)
	root.SetIn(w.In)
	root.SetOut(w.Out)
	root.SetErr(w.Err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var e *exit
	if !errors.As(err, &e) {
		e = &exit{code: codeOf(err), err: err, next: nextOf(err)}
	}
	if e.next == "" && e.code == exitUsage {
		e.next = c.CommandPath() + " --help"
	}
	if !e.quiet {
		_ = w.errScreen().Error(e.err, e.next) // the last thing said; there is nowhere else to say it
	}
	return e.code
}

func newRoot(w World) *cobra.Command {
	root := &cobra.Command{
		Use:   "kibo-rollout",
		Short: "upgrade a fleet of Kibotos hosts, step by step, through a gate",
		Long: "kibo-rollout upgrades a fleet of Kibotos hosts over SSH: it stages the target's packages, asks the target\n" +
			"programs whether they can take over, prints a plan, and walks it one step at a time.",
		Example:       "  kibo-rollout demo",
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetUsageTemplate(usageTemplate())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fail(exitUsage, c.CommandPath()+" --help", "%w", err)
	})
	root.AddCommand(
		versionCmd(w), demoCmd(w), planCmd(w), applyCmd(w), resumeCmd(w), abandonCmd(w), checkCmd(w), statusCmd(w),
		gateCmd(w), agentCmd(w), inventoryCmd(w),
	)
	for _, c := range root.Commands() {
		usageErrors(c)
	}
	return root
}

// noCommand refuses a word that is none of the commands.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	next := c.CommandPath() + " --help"
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		next = c.CommandPath() + " " + near[0]
	}
	return fail(exitUsage, next, "%s has no command %q", c.CommandPath(), args[0])
}

// usageErrors makes wrong arguments end with the code for usage, on every level.
func usageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fail(exitUsage, c.CommandPath()+" --help", "%w", err)
			}
			return nil
		}
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.Args = noCommand
		if c.Example == "" {
			c.Example = c.Commands()[0].Example
		}
		c.RunE = func(c *cobra.Command, _ []string) error {
			return fail(exitUsage, c.CommandPath()+" --help", "say what to do: %s", strings.Join(names(c), ", "))
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

func names(c *cobra.Command) []string {
	var out []string
	for _, sub := range c.Commands() {
		out = append(out, sub.Name())
	}
	return out
}

// screen draws on standard output: only what was asked for.
func (w World) screen() view.Screen { return w.on(w.Out) }

// errScreen draws on standard error: progress and errors.
func (w World) errScreen() view.Screen { return w.on(w.Err) }

func (w World) on(out io.Writer) view.Screen {
	s := view.Screen{Out: out}
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return s
	}
	if width, _, err := term.GetSize(f.Fd()); err == nil {
		s.Width = width
	}
	s.Color = w.Env("NO_COLOR") == "" && w.Env("TERM") != "dumb"
	return s
}

// terminal reports whether a person can be asked.
func (w World) terminal() bool {
	f, ok := w.In.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}
