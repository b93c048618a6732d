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

// causes groups findings that say the same of several hosts, in the order of first mention.
func causes(found []checks.Finding, level checks.Level) []cause {
	var out []cause
	for _, f := range found {
		if f.Level == "" {
			f.Level = checks.UnknownFact // a finding without a level blocks, so it is shown as what it is
		}
		if f.Level != level {
			continue
		}
		host := f.Host
		f.Host = ""
		i := slices.IndexFunc(out, func(c cause) bool { return c.Finding == f })
		if i < 0 {
			out, i = append(out, cause{Finding: f}), len(out)
		}
		if host != "" && !slices.Contains(out[i].hosts, host) {
			out[i].hosts = append(out[i].hosts, host)
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
		p.item(strings.Repeat(" ", len(lead))+"next: ", faint, plain, Line(c.Remedy))
	}
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
