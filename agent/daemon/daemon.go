package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sync/errgroup"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// SocketPath is where the daemon answers: whoever connects is sent one gate.Status as a line of JSON.
const SocketPath = "/run/kibo-agent/status.sock"

// TextfileDir is where Debian's node_exporter looks for metrics of others.
const TextfileDir = "/var/lib/prometheus/node-exporter"

// Daemon keeps house on a host: it removes windows that have ended, answers on a socket, and writes metrics.
type Daemon struct {
	Watcher  Watcher
	Status   func(context.Context) (gate.Status, error) // everything, also layers and jobs
	Sweep    func(context.Context) (string, error)      // removes the allow-file if it is over; "" if it did not
	Socket   string                                     // "": none
	Textfile string                                     // directory; "" or not there: no metrics
	Log      Log
}

// Run works until ctx ends. Each trouble with a duty is logged and leaves the others alone; only what cannot be
// watched ends it, for systemd to start it anew.
func (d Daemon) Run(ctx context.Context) error {
	var answers net.Listener
	if d.Socket != "" {
		var err error
		if answers, err = listen(d.Socket); err != nil {
			return err
		}
	}
	d.Log.say(levelInfo, "watching "+d.Watcher.Dir, nil)
	ready := false
	var told []gate.Ungated
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return d.Watcher.Run(ctx, func(s gate.Status) error {
			d.changed(ctx, s, told)
			told = s.Ungated
			notify("STATUS=" + Line(s))
			if !ready {
				ready = true
				notify(sd.SdNotifyReady)
			}
			return nil
		})
	})
	if answers != nil {
		group.Go(func() error { return d.serve(ctx, answers) })
	}
	group.Go(func() error { watchdog(ctx); return nil })
	err := group.Wait()
	notify(sd.SdNotifyStopping)
	return errors.Join(err, d.forget())
}

// changed does what a new answer asks for. told are the changes past the gate that were told before.
func (d Daemon) changed(ctx context.Context, s gate.Status, told []gate.Ungated) {
	d.Log.say(levelInfo, Line(s), fields(s))
	for _, u := range s.Ungated {
		if !slices.Contains(told, u) {
			d.Log.say(levelWarning, fmt.Sprintf("package %s went from %s to %s past the gate", u.Package, orNone(u.Was), orNone(u.Now)),
				map[string]string{"KIBO_UNGATED": u.Package})
		}
	}
	if err := d.measure(s); err != nil {
		d.Log.say(levelWarning, err.Error(), nil)
	}
	if s.Window == nil || d.Watcher.Now().Unix() < s.Window.NotAfter {
		return
	}
	did, err := d.Sweep(ctx)
	switch {
	case err != nil:
		d.Log.say(levelWarning, err.Error(), nil)
	case did != "":
		d.Log.say(levelInfo, did, nil)
	}
}

func orNone(version string) string {
	if version == "" {
		return "not installed"
	}
	return version
}

// Line is the answer as systemctl status shows it.
func Line(s gate.Status) string {
	word := "closed: "
	if s.Open {
		word = ""
	}
	text := word + s.Reason
	if held := s.Held(); len(held) > 0 {
		text += fmt.Sprintf("; held by %d: %s", len(held), held[0])
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// notify tells systemd, if it is there to be told.
func notify(state string) { _, _ = sd.SdNotify(false, state) }

// watchdog tells systemd that the program still runs. The unit's interval is long on purpose: the gate holds
// without the daemon, and a program that does nothing shall not wake a host for saying so.
func watchdog(ctx context.Context) {
	every, err := sd.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	tick := time.NewTicker(every / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			notify(sd.SdNotifyWatchdog)
		}
	}
}
