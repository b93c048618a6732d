package daemon

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

type level = journal.Priority

const (
	levelInfo    = journal.PriInfo
	levelWarning = journal.PriWarning
)

// Log is where the daemon tells what it does: the journal with its own fields, or a plain stream.
type Log struct{ Plain io.Writer } // nil: the journal

func (l Log) say(at level, text string, vars map[string]string) {
	if l.Plain == nil && journal.Send(text, at, vars) == nil {
		return
	}
	if l.Plain != nil {
		_, _ = fmt.Fprintln(l.Plain, text)
	}
}

// fields are what the journal keeps beside the sentence, so that it can be searched:
// journalctl KIBO_GATE=open.
func fields(s gate.Status) map[string]string {
	word := "closed"
	if s.Open {
		word = "open"
	}
	vars := map[string]string{"KIBO_GATE": word, "KIBO_CODE": s.Code, "KIBO_INHIBITORS": strconv.Itoa(len(s.Inhibitors))}
	if s.Window != nil {
		vars["KIBO_NOT_AFTER"] = strconv.FormatInt(s.Window.NotAfter, 10)
		vars["KIBO_WINDOW"] = s.Window.ID
		vars["KIBO_ISSUED_BY"] = s.Window.IssuedBy
	}
	if held := s.Held(); len(held) > 0 {
		vars["KIBO_HELD"] = strings.Join(held, "\n")
	}
	return vars
}
