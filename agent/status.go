package agent

import (
	"context"
	"errors"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Answer is the part of Status that changes by itself and costs little: gate, window, holds and inhibitors.
func Answer(ctx context.Context, version string, j Jobs) gate.Status {
	f, v := j.Window.Judge(gate.Request{})
	s := gate.Status{Version: version, Open: v.Open, Code: v.Code, Reason: v.Reason}
	if f.NotAfter != 0 {
		s.Window = &f
	}
	s.Holds = j.Window.Holds.List()
	locks, err := j.Inhibitors(ctx)
	if err != nil && !errors.Is(err, errNoLogind) {
		// A lock that may or may not be there is shown as one line that says so.
		locks = []gate.Inhibitor{{What: "unknown", Who: "unknown", Why: err.Error(), Mode: "unknown"}}
	}
	for _, lock := range locks {
		lock.Who, lock.Why = printable(lock.Who), printable(lock.Why)
		s.Inhibitors = append(s.Inhibitors, lock)
	}
	return s
}

// Noticing is Answer with the changes that went past the gate, for which dpkg is asked.
func Noticing(ctx context.Context, version string, j Jobs) gate.Status {
	s := Answer(ctx, version, j)
	var err error
	if s.Ungated, err = j.Versions.Look(); err != nil {
		s.Ungated = []gate.Ungated{{Package: "unknown", Now: printable(err.Error()), Noticed: j.Now().UTC()}}
	}
	return s
}

// Status gathers the host's answer on one page. What cannot be learned is told in its place and makes nothing
// else unavailable.
func Status(ctx context.Context, version string, j Jobs, l Layers) (gate.Status, error) {
	s := Noticing(ctx, version, j)
	s.Layers = l.Test()
	var err error
	s.Jobs, err = j.List(j.Now().Add(-24 * time.Hour))
	return s, err
}
