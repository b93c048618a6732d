// Package cli is kibo-agent's command line: flags to values, one call, one answer on the right stream.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Exit codes of kibo-agent.
const (
	ExitOK     = 0 // open, done, or a job that ended with 0
	ExitError  = 1 // an error, a refused hook, or a job that ended otherwise, is lost, unknown or still running
	ExitUsage  = 2
	ExitClosed = 4 // the gate is closed: nothing was started
	ExitBusy   = 5 // another job runs on this host: nothing was started
)

// Host is everything the commands touch.
type Host struct {
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Jobs    agent.Jobs // with its window
	Layers  agent.Layers
	Marker  agent.Marker
	Guard   agent.Guard
	Dpkg    agent.Dpkg
	Getenv  func(string) string
	// Shield makes signals that end a program pass by; only a job's own process calls it.
	Shield func()
}

// command is one row of the command line.
type command struct {
	name string
	args string
	help string
	run  func(context.Context, Host, []string) (int, error)
}

func commands() []command {
	return []command{
		{"check", "[--file P] [--operation O] [--package N=V]... [--sha256 H]... [--run R] [--plan P]", "ask the gate", check},
		{"allow", "(--for D | --until T | --for D --lease [--max D | --until T]) [--id ID] [--operation O]... [--package N=V]... [--sha256 H]... [--once] [--machine-id M] [--run R] [--plan P] [--issued-by S] [--reason S] [--format marker-file]", "open a window", allow},
		{"renew", "--id ID --for D", "prolong a lease, never beyond its hard end", renew},
		{"close", "[--id ID] [--format marker-file]", "close the window", closeWindow},
		{"hold", "--why TEXT [--id ID] [--by WHO]", "say no to every change of this host until released", hold},
		{"release", "[--id ID | --all]", "take holds away", release},
		{"acknowledge", "", "forget the changes that went past the gate", acknowledge},
		{"run", "--key K --operation O [--package N=V]... [--sha256 H]... [--run R] [--plan P] [--timeout D] -- ARGV...", "run a command through the gate, as a job that outlives the connection", runJob},
		{"wait", "--key K [--timeout D]", "wait for a job", wait},
		{"status", "", "window, hooks, inhibitors, holds, changes past the gate and jobs of this host", status},
		{"watch", "[--until free|open] [--timeout D] [--output jsonl]", "print the gate's answer, and again whenever it changes", watch},
		{"daemon", "[--socket P] [--textfile-dir D]", "watch this host: what kibo-agent.service runs", runDaemon},
		{"fleetlock", "[--listen 127.0.0.1:PORT | --config P]", "answer FleetLock requests of this host from the gate (operation reboot)", serveFleetLock},
		{"version", "[--json]", "print the version", version},
		{"apt-hook", "", "what apt calls before it changes packages", aptHook},
		{"dpkg-hook", "", "what dpkg calls before it changes packages", dpkgHook},
		{"job", "", "", job}, // the process of a job's unit; not for people
	}
}

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, h Host, args []string) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		usage(h.Stdout)
		if len(args) == 0 {
			return ExitUsage
		}
		return ExitOK
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		code, err := c.run(ctx, h, args[1:])
		var u usageError
		switch {
		case errors.Is(err, flag.ErrHelp):
			_, _ = fmt.Fprintf(h.Stdout, "usage: kibo-agent %s %s\n", c.name, c.args)
			return ExitOK
		case errors.As(err, &u):
			_, _ = fmt.Fprintf(h.Stderr, "error: %v\nnext: kibo-agent %s %s\n", err, c.name, c.args)
			return ExitUsage
		case err != nil:
			_, _ = fmt.Fprintf(h.Stderr, "error: %v\n", err)
			return ExitError
		}
		return code
	}
	_, _ = fmt.Fprintf(h.Stderr, "error: %q is no command of kibo-agent\nnext: kibo-agent help\n", args[0])
	return ExitUsage
}

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "kibo-agent lets changes of kibotos packages through while this host's allow-file permits them.\n\n")
	for _, c := range commands() {
		if c.help != "" {
			_, _ = fmt.Fprintf(w, "  kibo-agent %s %s\n        %s\n", c.name, c.args, c.help)
		}
	}
	_, _ = fmt.Fprint(w, `
Commands with an answer take --output json. Operations: `+strings.Join(gate.Operations(), ", ")+`.
Exit codes: 0 done or open, 1 error or the job failed, 2 usage, 4 closed, 5 another job runs here.
Example: kibo-agent allow --for 30m --package kibotos-node=0.1.4 --reason 'node upgrade'
`)
}

// flags reads a command's flags into values.
type flags struct {
	set      *flag.FlagSet
	output   string
	packages map[string]string
	sums     []string
	ops      []string
	run      string // which run asks
	plan     string // and by which plan
	streams  bool   // prints many answers: --output jsonl as well
}

func newFlags(name string) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError), packages: map[string]string{}}
	f.set.SetOutput(io.Discard) // Main prints it
	f.set.StringVar(&f.output, "output", "text", "")
	return f
}

// request adds the flags that say what is to be done.
func (f *flags) request() *flags {
	f.set.Func("operation", "", func(s string) error { f.ops = append(f.ops, s); return nil })
	f.set.Func("sha256", "", func(s string) error { f.sums = append(f.sums, s); return nil })
	f.set.Func("package", "", func(s string) error {
		name, version, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("must be NAME=VERSION")
		}
		if had, twice := f.packages[name]; twice && had != version {
			return errors.New("has two versions for " + name)
		}
		f.packages[name] = version
		return nil
	})
	return f
}

// asker adds the flags that say on whose behalf it is to be done.
func (f *flags) asker() *flags {
	f.set.StringVar(&f.run, "run", "", "")
	f.set.StringVar(&f.plan, "plan", "", "")
	return f
}

// parse reads args; rest says whether words may follow the flags.
func (f *flags) parse(args []string, rest bool) error {
	err := f.set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usageError{err}
	case !rest && f.set.NArg() > 0:
		return usageError{fmt.Errorf("%q is one word too many", f.set.Arg(0))}
	case f.output != "text" && f.output != "json" && !(f.streams && f.output == "jsonl"):
		return usageError{fmt.Errorf("--output must be text or json, not %q", f.output)}
	case len(f.ops)+len(f.packages)+len(f.sums)+len(f.run)+len(f.plan) == 0:
		return nil
	}
	if err := (gate.Request{Packages: f.packages, SHA256: f.sums, Run: f.run, Plan: f.plan}).Check(); err != nil {
		return usageError{err}
	}
	for _, op := range f.ops {
		if err := (gate.Request{Operation: op}).Check(); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// one is the request of a command that takes a single operation.
func (f *flags) one() (gate.Request, error) {
	if len(f.ops) > 1 {
		return gate.Request{}, usageError{errors.New("one --operation at a time")}
	}
	req := gate.Request{Packages: f.packages, SHA256: f.sums, Run: f.run, Plan: f.plan}
	if len(f.ops) == 1 {
		req.Operation = f.ops[0]
	}
	return req, nil
}

// print writes v as JSON, or else the text.
func (f *flags) print(h Host, v any, text string) error {
	if f.output != "json" {
		_, err := fmt.Fprintln(h.Stdout, text)
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot encode the answer: %w", err)
	}
	_, err = fmt.Fprintf(h.Stdout, "%s\n", data)
	return err
}

// moment reads --until: RFC 3339 with its offset, or Unix seconds. A bare clock time is no moment.
func moment(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	var n int64
	if _, err := fmt.Sscanf(s, "%d", &n); err == nil && fmt.Sprint(n) == s {
		return time.Unix(n, 0), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time with date and offset, like 2026-01-02T15:04:05Z, nor Unix seconds", s)
}

func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot resolve %s: %w", path, err)
	}
	return abs, nil
}
