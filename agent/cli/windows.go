package cli

import (
	"context"
	"fmt"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func check(_ context.Context, h Host, args []string) (int, error) {
	f := newFlags("check").request().asker()
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

func allow(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("allow").request()
	var file gate.AllowFile
	var s span
	format := f.format()
	f.set.DurationVar(&s.lasts, "for", 0, "")
	f.set.StringVar(&s.until, "until", "", "")
	f.set.BoolVar(&s.lease, "lease", false, "")
	f.set.DurationVar(&s.most, "max", 0, "")
	f.set.StringVar(&file.ID, "id", "", "")
	f.set.BoolVar(&file.SingleUse, "once", false, "")
	f.set.StringVar(&file.MachineID, "machine-id", "", "")
	f.set.StringVar(&file.Run, "run", "", "")
	f.set.StringVar(&file.Plan, "plan", "", "")
	f.set.StringVar(&file.IssuedBy, "issued-by", "", "")
	f.set.StringVar(&file.Reason, "reason", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if err := checkFormat(*format); err != nil {
		return 0, err
	}
	if err := s.put(&file, h.Jobs.Now()); err != nil {
		return 0, err
	}
	file.Operations, file.Packages, file.SHA256 = f.ops, f.packages, f.sums
	if *format == formatMarker {
		return f.mark(h, file)
	}
	v, err := h.Jobs.Window.Place(ctx, file)
	if err != nil {
		return 0, err
	}
	if !v.Open && v.Code != gate.CodeHeld {
		return 0, fmt.Errorf("cannot open the gate with %s: %s", h.Jobs.Window.Path, v.Reason)
	}
	return ExitOK, f.placed(h, file, v)
}

// closed is what close answers.
type closed struct {
	Closed bool   `json:"closed"` // no window is open now
	Reason string `json:"reason"`
}

func closeWindow(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("close")
	id := f.set.String("id", "", "")
	format := f.format()
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if err := checkFormat(*format); err != nil {
		return 0, err
	}
	if *format == formatMarker {
		return f.unmark(h, *id)
	}
	did, err := h.Jobs.Window.Close(ctx, *id)
	if err != nil {
		return 0, err
	}
	_, v := h.Jobs.Window.Judge(gate.Request{})
	return ExitOK, f.print(h, closed{Closed: !v.Open, Reason: did}, did)
}
