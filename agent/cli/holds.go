package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func hold(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("hold")
	var want gate.Hold
	f.set.StringVar(&want.Why, "why", "", "")
	f.set.StringVar(&want.Who, "by", cmp.Or(h.Getenv("SUDO_USER"), h.Getenv("USER"), "root"), "")
	f.set.StringVar(&want.ID, "id", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if strings.TrimSpace(want.Why) == "" {
		return 0, usageError{errors.New("--why is missing: others must be able to tell whether it still holds")}
	}
	if want.ID != "" {
		if err := gate.CheckHoldID(want.ID); err != nil {
			return 0, usageError{err}
		}
	}
	placed, err := h.Jobs.Window.Hold(ctx, want)
	if err != nil {
		return 0, err
	}
	return ExitOK, f.print(h, placed, placed.Words()+"\nnext: kibo-agent release --id "+placed.ID)
}

// released is what release answers.
type released struct {
	Released []gate.Hold `json:"released"`
	Left     []gate.Hold `json:"left"` // those that still hold the host
}

func release(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("release")
	id := f.set.String("id", "", "")
	all := f.set.Bool("all", false, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	if *id != "" && *all {
		return 0, usageError{errors.New("say either --id or --all")}
	}
	gone, err := h.Jobs.Window.Release(ctx, *id, *all)
	if err != nil {
		return 0, err
	}
	answer := released{Released: append([]gate.Hold{}, gone...), Left: append([]gate.Hold{}, h.Jobs.Window.Holds.List()...)}
	var lines []string
	for _, hold := range gone {
		lines = append(lines, "released: "+hold.Words())
	}
	if len(gone) == 0 {
		lines = append(lines, "there was no such hold")
	}
	for _, hold := range answer.Left {
		lines = append(lines, "still held: "+hold.Words())
	}
	return ExitOK, f.print(h, answer, strings.Join(lines, "\n"))
}

func renew(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("renew")
	id := f.set.String("id", "", "")
	lasts := f.set.Duration("for", 0, "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	switch {
	case *id == "":
		return 0, usageError{errors.New("--id is missing: only one's own window can be renewed")}
	case *lasts < time.Second:
		return 0, usageError{fmt.Errorf("--for %s is no window", *lasts)}
	}
	file, v, err := h.Jobs.Window.Renew(ctx, *id, *lasts)
	if err != nil {
		return 0, err
	}
	if !v.Open && v.Code != gate.CodeHeld && v.Code != gate.CodeNotYet {
		return ExitClosed, f.print(h, placed{Verdict: v, Path: h.Jobs.Window.Path, Window: file}, "not renewed: "+v.Reason)
	}
	return ExitOK, f.placed(h, file, v)
}

func acknowledge(_ context.Context, h Host, args []string) (int, error) {
	f := newFlags("acknowledge")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	had, err := h.Jobs.Versions.Acknowledge()
	if err != nil {
		return 0, err
	}
	lines := []string{"there was nothing to acknowledge"}
	if len(had) > 0 {
		lines = nil
	}
	for _, u := range had {
		lines = append(lines, "acknowledged: "+ungated(u))
	}
	return ExitOK, f.print(h, struct {
		Acknowledged []gate.Ungated `json:"acknowledged"`
	}{append([]gate.Ungated{}, had...)}, strings.Join(lines, "\n"))
}

// ungated says one change that went past the gate.
func ungated(u gate.Ungated) string {
	if u.Package == "unknown" {
		return "whether packages changed past the gate is unknown: " + u.Now
	}
	return fmt.Sprintf("%s went from %s to %s past the gate, noticed %s", u.Package,
		cmp.Or(u.Was, "not installed"), cmp.Or(u.Now, "not installed"), gate.Clock(u.Noticed.Unix()))
}
