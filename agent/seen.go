package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// clockSlack is how far a clock may step back, as time daemons do, without closing the gate.
const clockSlack = 2 * time.Minute

// seenStep keeps the high-water mark from being written at every question.
const seenStep = time.Minute

// Seen is the latest time this host is known to have seen, kept in a file, so that a clock that was set back
// does not open a window again that has ended.
type Seen struct {
	Path string // empty: not kept
	// Synced reports whether the clock was set by a time service since boot; nil counts as yes.
	Synced func() bool
}

// slack is how far the clock may be behind the mark. Only a clock that a time service keeps may be at all: any
// other one may be on its way from the wrong year.
func (s Seen) slack() time.Duration {
	if s.Synced != nil && !s.Synced() {
		return 0
	}
	return clockSlack
}

// check fails with a *gate.Denial when now is clearly before a time already seen.
func (s Seen) check(now time.Time) error {
	high, err := s.read()
	if err != nil {
		return err
	}
	if now.Before(high) && now.Add(s.slack()).Before(high) {
		return gate.Deny(gate.CodeClockBack, "the clock says %s, but this host has already seen %s; remove %s once the clock is right",
			gate.Clock(now.Unix()), gate.Clock(high.Unix()), s.Path)
	}
	return nil
}

// note raises the mark to now.
func (s Seen) note(now time.Time) error {
	high, err := s.read()
	if err != nil {
		return err
	}
	if s.Path == "" || now.Before(high.Add(seenStep)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o755); err != nil {
		return fmt.Errorf("cannot make %s: %w", filepath.Dir(s.Path), err)
	}
	return writeDurable(s.Path, []byte(strconv.FormatInt(now.Unix(), 10)+"\n"), 0o644)
}

// read returns the mark; none yet is the zero time. A mark that cannot be read is an error, not "none".
func (s Seen) read() (time.Time, error) {
	if s.Path == "" {
		return time.Time{}, nil
	}
	data, err := os.ReadFile(s.Path)
	if os.IsNotExist(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the latest time seen: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the latest time seen in %s: %w", s.Path, err)
	}
	return time.Unix(n, 0), nil
}
