package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// deb matches the package file of a part.
func deb(p release.Part) func(release.Deb) bool {
	return func(d release.Deb) bool { return d.Part == p }
}

// cause is one thing that was found, with every host it was found on.
type cause struct {
	checks.Finding
	hosts []string
}

// levels in the order in which they are shown: what stops the upgrade first.
func levels() []checks.Level {
	return []checks.Level{checks.Block, checks.UnknownFact, checks.Warn, checks.Pass}
}

// causes groups findings that say the same of several hosts, in the order of first mention. Their remedies may differ
// in the host's name.
func causes(found []checks.Finding, level checks.Level) []cause {
	var out []cause
	at := map[checks.Finding]int{}
	for _, f := range found {
		if f.Level == "" {
			f.Level = checks.UnknownFact // a finding without a level blocks, so it is shown as what it is
		}
		if f.Level != level {
			continue
		}
		key := f
		key.Host = ""
		if f.Host != "" {
			key.Remedy = strings.ReplaceAll(f.Remedy, f.Host, "\x00")
		}
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, cause{Finding: f})
		}
		if f.Host != "" && !slices.Contains(out[i].hosts, f.Host) {
			out[i].hosts = append(out[i].hosts, f.Host)
		}
	}
	return out
}

// findings draws findings by cause. Those that pass are only counted, unless all is set.
func (p *page) findings(found []checks.Finding, all bool) {
	if len(found) == 0 {
		return
	}
	p.heading("findings")
	var counts []string
	for _, level := range levels() {
		n := 0
		for _, c := range causes(found, level) {
			n += max(len(c.hosts), 1)
			if level != checks.Pass || all {
				p.cause(c)
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, level))
		}
	}
	p.text("  ", faint, strings.Join(counts, ", "))
}

func (p *page) cause(c cause) {
	lead := "  " + pad(string(c.Level), len("unknown")) + "  "
	about := make([]string, 0, 2)
	for _, h := range c.hosts {
		about = append(about, Line(h))
	}
	text := Line(c.Text)
	if len(about) > 0 {
		text = strings.Join(about, ", ") + ": " + text
	}
	if c.Check != "" {
		text += " [" + Line(c.Check) + "]"
	}
	p.item(lead, levelTone(c.Level), plain, text)
	if c.Remedy != "" {
		p.item(strings.Repeat(" ", len(lead))+"next: ", faint, plain, Line(c.remedy()))
	}
}

// remedy is the remedy for all hosts of the cause: where it selects the first one with -l, it selects all.
func (c cause) remedy() string {
	if len(c.hosts) < 2 || !strings.Contains(c.Remedy, c.Host) {
		return c.Remedy
	}
	one := "-l " + c.Host
	if strings.Contains(c.Remedy, one) {
		return strings.ReplaceAll(c.Remedy, one, "-l "+strings.Join(c.hosts, ","))
	}
	return c.Remedy + "   # and so for the others"
}

func levelTone(l checks.Level) tone {
	switch l {
	case checks.Pass:
		return good
	case checks.Warn:
		return warn
	}
	return bad
}

// Findings draws findings by cause, those that pass only with Verbose.
func (s Screen) Findings(found []checks.Finding) error {
	g := s.page()
	g.findings(found, s.Verbose)
	return g.flush(s.Out)
}
