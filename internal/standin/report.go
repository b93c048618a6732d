package standin

import (
	"fmt"
	"io"
)

// Levels of a report line.
const (
	levelOK      = "ok"
	levelBlocker = "blocker"
	levelNotice  = "notice"
	levelAfter   = "after-migration"
	levelAction  = "action"
)

// report collects the lines of a check: blockers one by one with reasons, a summary at the end,
// exit status 0 only without blockers (K29).
type report struct {
	lines    []string
	blockers int
}

func (r *report) add(level, section, format string, args ...any) {
	if level == levelBlocker {
		r.blockers++
	}
	r.lines = append(r.lines, fmt.Sprintf("[%s] %s: %s", level, section, fmt.Sprintf(format, args...)))
}

// okUnless adds an ok line if the section has had no blocker since before.
func (r *report) okUnless(before int, section, format string, args ...any) {
	if r.blockers == before {
		r.add(levelOK, section, format, args...)
	}
}

// write prints the report and returns the exit status.
func (r *report) write(w io.Writer) int {
	for _, line := range r.lines {
		_, _ = fmt.Fprintln(w, line)
	}
	_, _ = fmt.Fprintf(w, "summary: %d blocker(s)\n", r.blockers)
	if r.blockers > 0 {
		return 1
	}
	return 0
}
