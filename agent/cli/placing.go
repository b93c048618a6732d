package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// defaultLease is how long a lease can be renewed when nobody says otherwise.
const defaultLease = 4 * time.Hour

// span is what allow is told about time.
type span struct {
	lasts, most time.Duration
	until       string
	lease       bool
}

// put reads the flags into the window's times.
func (s span) put(f *gate.AllowFile, now time.Time) error {
	switch {
	case s.lasts < 0 || s.lasts > 0 && s.lasts < time.Second:
		return usageError{fmt.Errorf("--for %s is no window", s.lasts)}
	case s.lease:
		return s.putLease(f, now)
	case s.most != 0:
		return usageError{errors.New("--max belongs to --lease")}
	case (s.lasts == 0) == (s.until == ""):
		return usageError{errors.New("say either --for or --until")}
	case s.lasts > 0:
		f.NotAfter = now.Add(s.lasts).Unix()
		return nil
	}
	t, err := moment(s.until)
	if err != nil {
		return usageError{err}
	}
	f.NotAfter = t.Unix()
	return nil
}

// putLease: --for is how long it lasts unless it is renewed, --until or --max the end of all renewals.
func (s span) putLease(f *gate.AllowFile, now time.Time) error {
	switch {
	case s.lasts == 0:
		return usageError{errors.New("--lease needs --for: how long it lasts unless it is renewed")}
	case f.ID == "":
		return usageError{errors.New("--lease needs --id: it is renewed by that")}
	case s.most < 0 || s.most != 0 && s.until != "":
		return usageError{errors.New("say either --until or --max for the end of all renewals")}
	}
	hard := now.Add(defaultLease)
	if s.most > 0 {
		hard = now.Add(s.most)
	}
	if s.until != "" {
		t, err := moment(s.until)
		if err != nil {
			return usageError{err}
		}
		hard = t
	}
	f.RenewUntil = hard.Unix()
	f.NotAfter = min(now.Add(s.lasts).Unix(), f.RenewUntil)
	return nil
}

// placed is what allow and renew answer.
type placed struct {
	gate.Verdict
	Path   string         `json:"path"`
	Until  string         `json:"until,omitempty"` // RFC 3339, UTC
	Window gate.AllowFile `json:"window"`
}

// placed prints the window that is there now. While somebody holds the host it is there all the same: what was
// stopped can be started again.
func (f *flags) placed(h Host, file gate.AllowFile, v gate.Verdict) error {
	end := time.Unix(file.NotAfter, 0)
	words := v.Reason
	if !v.Open {
		words = "placed until " + gate.Clock(file.NotAfter) + ", but closed: " + v.Reason
	}
	text := fmt.Sprintf("%s (%s here, %s left)", words, end.Local().Format("15:04:05 MST"), end.Sub(h.Jobs.Now()).Round(time.Second))
	if file.RenewUntil > file.NotAfter {
		text += "; can be renewed until " + gate.Clock(file.RenewUntil)
	}
	return f.print(h, placed{Verdict: v, Path: h.Jobs.Window.Path, Until: end.UTC().Format(time.RFC3339), Window: file}, text)
}
