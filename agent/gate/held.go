package gate

import (
	"fmt"
	"slices"
	"strings"
)

// Blocks reports whether the lock keeps a host from being changed: a block lock on shutdown, not a delay (Z7). "block-weak" is what
// "block" was before systemd 257. A mode that is not known counts, because logind did not answer.
func (i Inhibitor) Blocks() bool {
	strong := i.Mode == "block" || i.Mode == "block-weak" || i.Mode == "unknown"
	return strong && (i.Mode == "unknown" || slices.Contains(strings.Split(i.What, ":"), "shutdown"))
}

// Held lists who keeps the host from being changed, one sentence each; none: it is free.
func (s Status) Held() []string {
	var out []string
	for _, h := range s.Holds {
		out = append(out, h.Words())
	}
	for _, i := range s.Inhibitors {
		if i.Blocks() {
			out = append(out, fmt.Sprintf("%s (process %d, user %d) holds the host: %s", orNone(i.Who), i.PID, i.UID, orNone(i.Why)))
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}
