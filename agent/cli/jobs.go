package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

func runJob(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("run").request().asker()
	key := f.set.String("key", "", "")
	patience := f.set.Duration("timeout", 0, "")
	if err := f.parse(args, true); err != nil {
		return 0, err
	}
	req, err := f.one()
	if err != nil {
		return 0, err
	}
	o := agent.Order{Key: *key, Request: req, Argv: f.set.Args()}
	if err := o.Check(); err != nil {
		return 0, usageError{err}
	}
	j, err := h.Jobs.Run(ctx, o, *patience)
	if err != nil {
		return 0, err
	}
	return f.answer(h, j)
}

func wait(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("wait")
	key := f.set.String("key", "", "")
	patience := f.set.Duration("timeout", 0, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if err := agent.CheckKey(*key); err != nil {
		return 0, usageError{err}
	}
	if *patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *patience)
		defer cancel()
	}
	j, err := h.Jobs.Wait(ctx, *key)
	if err != nil {
		return 0, err
	}
	return f.answer(h, j)
}

// answer prints a job and turns its state into the exit code.
func (f *flags) answer(h Host, j gate.Job) (int, error) {
	if err := f.print(h, j, describe(j)); err != nil {
		return 0, err
	}
	switch {
	case j.State == gate.JobFinished && j.Exit == 0:
		return ExitOK, nil
	case j.State == gate.JobDenied:
		return ExitClosed, nil
	case j.State == gate.JobBusy:
		return ExitBusy, nil
	}
	return ExitError, nil
}

func describe(j gate.Job) string {
	s := j.State
	switch {
	case j.State == gate.JobFinished:
		s = fmt.Sprintf("%s with exit %d after %s", s, j.Exit, j.Ended.Sub(j.Started).Round(time.Millisecond))
	case j.State == gate.JobRunning && j.Started.IsZero():
		s += ": " + j.Reason
	case j.State == gate.JobRunning:
		s += " since " + gate.Clock(j.Started.Unix()) + "; next: kibo-agent wait --key " + j.Key
	case j.Reason != "":
		s += ": " + j.Reason
	}
	return strings.TrimPrefix(j.Output+"job "+j.Key+" "+s, "\n")
}

// job is the process of a job's unit.
func job(_ context.Context, h Host, args []string) (int, error) {
	f := newFlags("job")
	key := f.set.String("key", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	h.Shield()
	return ExitOK, h.Jobs.Work(*key)
}

func status(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("status")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	s, err := agent.Status(ctx, h.Version, h.Jobs, h.Layers)
	if err != nil {
		return 0, err
	}
	return ExitOK, f.print(h, s, statusText(s))
}

func statusText(s gate.Status) string {
	var b strings.Builder
	word := "closed: "
	if s.Open {
		word = ""
	}
	_, _ = fmt.Fprintf(&b, "kibo-agent %s\ngate: %s%s\n", s.Version, word, s.Reason)
	for _, l := range s.Layers {
		if l.Active {
			_, _ = fmt.Fprintf(&b, "%s hook: active\n", l.Name)
		} else {
			_, _ = fmt.Fprintf(&b, "%s hook: NOT ACTIVE: %s\n", l.Name, l.Reason)
		}
	}
	for _, i := range s.Inhibitors {
		_, _ = fmt.Fprintf(&b, "inhibitor: %s %s by %s: %s\n", i.Mode, i.What, i.Who, i.Why)
	}
	for _, hold := range s.Holds {
		_, _ = fmt.Fprintf(&b, "hold: %s\n", hold.Words())
	}
	for _, u := range s.Ungated {
		_, _ = fmt.Fprintf(&b, "ungated: %s\n", ungated(u))
	}
	for _, j := range s.Jobs {
		_, _ = fmt.Fprintln(&b, describe(j))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func version(_ context.Context, h Host, args []string) (int, error) {
	f := newFlags("version")
	asJSON := f.set.Bool("json", false, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if *asJSON {
		f.output = "json"
	}
	v := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}{"kibo-agent", h.Version}
	return ExitOK, f.print(h, v, v.Name+" "+v.Version)
}
