package inventory

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with an inventory, and where.
type Problem struct {
	File   string // as given to Load; "-" for standard input, "-e" for extra variables
	Line   int    // 1-based; 0: the file as a whole
	Column int    // 1-based; 0: the line as a whole
	Text   string // the line itself; "" if there is none or if it holds a secret
	What   string // what is wrong, in one sentence without a full stop
	Next   string // what to do about it; may be ""
	Hosts  []string
}

// Error renders the problem as file:line:column: what, then the line, then what to do.
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
			if p.Column > 0 {
				fmt.Fprintf(&b, ":%d", p.Column)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(p.What)
	if len(p.Hosts) > 0 {
		fmt.Fprintf(&b, " (%s)", firstNames(p.Hosts))
	}
	if p.Text != "" {
		fmt.Fprintf(&b, "\n  %5d | %s", p.Line, visible(p.Text))
	}
	if p.Next != "" {
		fmt.Fprintf(&b, "\n        -> %s", p.Next)
	}
	return b.String()
}

// Problems is what Load and Select return when anything is wrong: all of it, not only the first.
type Problems []Problem

// Error renders every problem, one after the other.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// err returns nil for an empty list, so that no typed nil gets out.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// firstNames lists up to three hosts and counts the rest.
func firstNames(hosts []string) string {
	const shown = 3
	word := "host "
	if len(hosts) > 1 {
		word = "hosts "
	}
	if len(hosts) <= shown {
		return word + strings.Join(hosts, ", ")
	}
	return fmt.Sprintf("%s%s and %d more", word, strings.Join(hosts[:shown], ", "), len(hosts)-shown)
}

// visible shows characters that an editor hides, and cuts long lines.
func visible(s string) string {
	const most = 200
	var b strings.Builder
	for _, r := range strings.TrimRight(s, "\r\n ") {
		switch {
		case r == '\t':
			b.WriteString("<TAB>")
		case hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
		if b.Len() > most {
			b.WriteString("…")
			break
		}
	}
	return b.String()
}

// collector gathers problems and warnings while an inventory is read. The same problem of several hosts (a group's
// variable, say) is one problem that names them all.
type collector struct {
	problems Problems
	warnings Problems
	seen     map[string]int // file:line:column:what → index in problems
	texts    map[string][]string
}

func newCollector() *collector {
	return &collector{seen: map[string]int{}, texts: map[string][]string{}}
}

// source remembers the lines of a file, so that problems in it can show them.
func (c *collector) source(file string, data []byte) {
	c.texts[file] = strings.Split(string(data), "\n")
}

// place is where something was written.
type place struct {
	file         string
	line, column int
}

// add records a problem at a place; hosts are those it concerns, if it is about hosts.
func (c *collector) add(at place, what, next string, hosts ...string) {
	key := fmt.Sprintf("%s:%d:%d:%s", at.file, at.line, at.column, what)
	if i, ok := c.seen[key]; ok {
		for _, h := range hosts {
			if !slices.Contains(c.problems[i].Hosts, h) {
				c.problems[i].Hosts = append(c.problems[i].Hosts, h)
			}
		}
		return
	}
	c.seen[key] = len(c.problems)
	c.problems = append(c.problems, c.problem(at, what, next, hosts))
}

// warn records something that works, but not as its author may think.
func (c *collector) warn(at place, what, next string) {
	key := fmt.Sprintf("warning %s:%d:%d:%s", at.file, at.line, at.column, what)
	if _, ok := c.seen[key]; ok {
		return
	}
	c.seen[key] = len(c.warnings)
	c.warnings = append(c.warnings, c.problem(at, what, next, nil))
}

func (c *collector) problem(at place, what, next string, hosts []string) Problem {
	p := Problem{File: at.file, Line: at.line, Column: at.column, What: what, Next: next, Hosts: slices.Clone(hosts)}
	if lines := c.texts[at.file]; at.line > 0 && at.line <= len(lines) && !holdsSecret(lines[at.line-1]) {
		p.Text = lines[at.line-1]
	}
	return p
}
