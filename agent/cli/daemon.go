package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/daemon"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// heapLimit is what the daemon's memory is collected at. Collecting by the clock instead would wake an idle host.
const heapLimit = 6 << 20

// dpkgDir is where dpkg keeps its list.
const dpkgDir = "/var/lib/dpkg"

// watcher watches this host's gate.
func (h Host) watcher() daemon.Watcher {
	return daemon.Watcher{Dir: h.Jobs.Dir, Holds: filepath.Join(h.Jobs.Dir, filepath.Base(gate.HoldsPath)), Bus: daemon.Bus, Now: h.Jobs.Now,
		Look: func(ctx context.Context) gate.Status { return agent.Answer(ctx, h.Version, h.Jobs) }}
}

// runDaemon is the process of kibo-agent.service.
func runDaemon(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("daemon")
	d := daemon.Daemon{Watcher: h.watcher(), Sweep: h.Jobs.Window.Sweep,
		Status: func(ctx context.Context) (gate.Status, error) { return agent.Status(ctx, h.Version, h.Jobs, h.Layers) }}
	d.Watcher.Dpkg = dpkgDir
	d.Watcher.Look = func(ctx context.Context) gate.Status { return agent.Noticing(ctx, h.Version, h.Jobs) }
	f.set.StringVar(&d.Socket, "socket", daemon.SocketPath, "")
	f.set.StringVar(&d.Textfile, "textfile-dir", daemon.TextfileDir, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if h.Getenv("JOURNAL_STREAM") == "" {
		d.Log.Plain = h.Stderr
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(heapLimit)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return ExitOK, d.Run(ctx)
}

// watch prints the gate's answer, and again whenever it changes.
func watch(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("watch")
	f.streams = true
	until := f.set.String("until", "", "")
	patience := f.set.Duration("timeout", 0, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if *until != "" && *until != "free" && *until != "open" {
		return 0, usageError{fmt.Errorf("--until must be free or open, not %q", *until)}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	if *patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *patience)
		defer cancel()
	}
	if out, ok := h.Stdout.(*os.File); ok {
		var release func()
		ctx, release = daemon.Hangup(ctx, int(out.Fd()))
		defer release()
	}
	reached := false
	err := h.watcher().Run(ctx, func(s gate.Status) error {
		if err := f.printLine(h, s); err != nil {
			return err
		}
		if *until == "free" && len(s.Held()) == 0 || *until == "open" && s.Open {
			reached = true
			return errReached
		}
		return nil
	})
	switch {
	case reached:
		return ExitOK, nil
	case err != nil:
		return 0, err
	case *until != "":
		return ExitClosed, nil
	}
	return ExitOK, nil
}

// errReached ends a watch that was to end at an answer.
var errReached = errors.New("reached")

// printLine prints one answer of many, each on a line of its own.
func (f *flags) printLine(h Host, s gate.Status) error {
	if f.output != "jsonl" && f.output != "json" {
		_, err := fmt.Fprintf(h.Stdout, "%s  %s\n", h.Jobs.Now().UTC().Format(time.RFC3339), daemon.Line(s))
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the answer: %w", err)
	}
	_, err = fmt.Fprintf(h.Stdout, "%s\n", data)
	return err
}
