package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/remote"
)

// cause is one reason, and the hosts that it kept from answering.
type cause struct {
	kind  remote.Kind
	text  string
	hosts []string
	err   error // the first host's
}

// causes groups hosts by why they did not answer: what differs only in the host's own name or address is one cause.
func causes(states []state) []cause {
	var out []cause
	for _, h := range states {
		if h.err == nil {
			continue
		}
		c := cause{text: h.err.Error(), hosts: []string{h.host.Name}, err: h.err}
		var e *remote.Error
		if errors.As(h.err, &e) {
			c.kind, c.text = e.Kind, e.Err.Error()
		}
		plain := withoutNames(c.text, h.host.Name, h.host.Login.Address)
		i := slices.IndexFunc(out, func(o cause) bool { return o.kind == c.kind && o.text == plain })
		if i < 0 {
			c.text = plain
			out = append(out, c)
			continue
		}
		out[i].hosts = append(out[i].hosts, h.host.Name)
	}
	return out
}

func withoutNames(text string, names ...string) string {
	for _, n := range names {
		if n != "" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(n)+`\b`).ReplaceAllString(text, "HOST")
		}
	}
	return text
}

// unreachable makes one error of all hosts that did not answer, grouped by cause.
func (a answer) unreachable() error {
	found := causes(slices.Concat(a.hosts, a.more))
	if len(found) == 0 {
		return nil
	}
	first := found[0]
	if len(found) == 1 && len(first.hosts) == 1 {
		return &exit{code: codeOf(first.err), err: fmt.Errorf("%w; nothing was changed", first.err), next: nextOf(first.err)}
	}
	n, code := 0, exitDone
	var lines []string
	for _, c := range found {
		n += len(c.hosts)
		code = max(code, codeOf(c.err))
		kind := string(c.kind)
		if kind == "" {
			kind = "error"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s: %s", strings.Join(c.hosts, ", "), kind, c.text))
	}
	err := fmt.Errorf("%d of %d hosts did not answer; nothing was changed\n%s", n, len(a.hosts)+len(a.more), strings.Join(lines, "\n"))
	return &exit{code: code, err: err, next: nextOf(first.err)}
}
