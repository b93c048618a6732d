package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func check(_ context.Context, h Host, args []string) (int, error) {
	f := newFlags("check").request()
	w := h.Jobs.Window
	f.set.StringVar(&w.Path, "file", w.Path, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	req, err := f.one()
	if err != nil {
		return 0, err
	}
	if w.Path, err = absolute(w.Path); err != nil {
		return 0, err
	}
	_, v := w.Judge(req)
	word := "closed: "
	if v.Open {
		word = ""
	}
	if err := f.print(h, v, word+v.Reason); err != nil {
		return 0, err
	}
	if !v.Open {
		return ExitClosed, nil
	}
	return ExitOK, nil
}

// placed is what allow answers.
type placed struct {
	gate.Verdict
	Path   string         `json:"path"`
	Until  string         `json:"until"` // RFC 3339, UTC
	Window gate.AllowFile `json:"window"`
}

func allow(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("allow").request()
	var file gate.AllowFile
	var lasts time.Duration
	var until string
	f.set.DurationVar(&lasts, "for", 0, "")
	f.set.StringVar(&until, "until", "", "")
	f.set.StringVar(&file.ID, "id", "", "")
	f.set.BoolVar(&file.SingleUse, "once", false, "")
	f.set.StringVar(&file.IssuedBy, "issued-by", "", "")
	f.set.StringVar(&file.Reason, "reason", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	now := h.Jobs.Now()
	switch {
	case (lasts == 0) == (until == ""):
		return 0, usageError{errors.New("say either --for or --until")}
	case lasts < 0 || lasts > 0 && lasts < time.Second:
		return 0, usageError{fmt.Errorf("--for %s is no window", lasts)}
	case lasts > 0:
		file.NotAfter = now.Add(lasts).Unix()
	default:
		t, err := moment(until)
		if err != nil {
			return 0, usageError{err}
		}
		file.NotAfter = t.Unix()
	}
	file.Operations, file.Packages, file.SHA256 = f.ops, f.packages, f.sums
	v, err := h.Jobs.Window.Place(ctx, file)
	if err != nil {
		return 0, err
	}
	if !v.Open {
		return 0, fmt.Errorf("cannot open the gate with %s: %s", h.Jobs.Window.Path, v.Reason)
	}
	end := time.Unix(file.NotAfter, 0)
	answer := placed{Verdict: v, Path: h.Jobs.Window.Path, Until: end.UTC().Format(time.RFC3339), Window: file}
	return ExitOK, f.print(h, answer, fmt.Sprintf("%s (%s here, %s left)", v.Reason, end.Local().Format("15:04:05 MST"), end.Sub(now).Round(time.Second)))
}

// closed is what close answers.
type closed struct {
	Closed bool   `json:"closed"` // no window is open now
	Reason string `json:"reason"`
}

func closeWindow(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("close")
	id := f.set.String("id", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	did, err := h.Jobs.Window.Close(ctx, *id)
	if err != nil {
		return 0, err
	}
	_, v := h.Jobs.Window.Judge(gate.Request{})
	return ExitOK, f.print(h, closed{Closed: !v.Open, Reason: did}, did)
}
