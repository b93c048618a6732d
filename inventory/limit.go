package inventory

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	subscript = regexp.MustCompile(`^(.+)\[(?:(-?[0-9]+)|([0-9]+)([:-])([0-9]*))\]$`)
	element   = regexp.MustCompile(`(?:[^\s:\[\]]|\[[^\]]*\])+`)
	hostLike  = regexp.MustCompile(`^[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]|\[[0-9a-zA-Z]+:[0-9a-zA-Z]+(?::[0-9]+)?\])*$`)
	globMark  = regexp.MustCompile(`[.?*\[]`)
)

// Select returns the hosts that a limit names, in inventory order. The syntax is Ansible's: elements separated by commas
// (or colons), & for intersection, ! for exclusion, ~regex, globs, group[0:2], and @file with an element a line.
// Unlike Ansible every element must match a host, and an empty selection is an error, never "all". No limit is "all".
func (inv *Inventory) Select(limit string) ([]Host, error) {
	patterns, err := splitLimit(limit)
	if err != nil {
		return nil, err
	}
	if len(patterns) == 0 {
		return nil, fmt.Errorf(`cannot select hosts: the limit %q is empty, and an empty limit is not "all"`, limit)
	}
	in, problems := inv.combine(patterns)
	if err := problems.err(); err != nil {
		return nil, fmt.Errorf("cannot select hosts: %w", err)
	}
	var out []Host
	for _, h := range inv.hosts {
		if in[h.Name] {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("cannot select hosts: the limit %q leaves no host", limit)
	}
	return out, nil
}

// combine adds up the elements: first those without a sign, then & and then !, as Ansible does.
func (inv *Inventory) combine(patterns []string) (in map[string]bool, problems Problems) {
	var wanted, also, without []string
	for _, p := range patterns {
		switch p[0] {
		case '&':
			also = append(also, p[1:])
		case '!':
			without = append(without, p[1:])
		default:
			wanted = append(wanted, p)
		}
	}
	if len(wanted) == 0 {
		wanted = []string{"all"}
	}
	in = map[string]bool{}
	each := func(list []string, f func(map[string]bool)) {
		for _, p := range list {
			names, problem := inv.match(p)
			if problem != nil {
				problems = append(problems, *problem)
				continue
			}
			f(names)
		}
	}
	keep := func(want bool) func(map[string]bool) {
		return func(m map[string]bool) {
			maps.DeleteFunc(in, func(n string, _ bool) bool { return m[n] != want })
		}
	}
	each(wanted, func(m map[string]bool) { maps.Copy(in, m) })
	each(also, keep(true))
	each(without, keep(false))
	return in, problems
}

// splitLimit splits a limit into elements and reads @files.
func splitLimit(limit string) ([]string, error) {
	var out []string
	for _, p := range splitPatterns(limit) {
		if p[0] != '@' {
			out = append(out, p)
			continue
		}
		data, err := os.ReadFile(p[1:])
		if err != nil {
			return nil, fmt.Errorf("cannot read limit file %s: %w", p[1:], unwrapPath(err))
		}
		before := len(out)
		for _, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				out = append(out, line)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("cannot select hosts: the limit file %s names none", p[1:])
		}
	}
	return out, nil
}

// splitPatterns splits at commas; where there is none, at colons outside brackets, unless the whole is an address.
func splitPatterns(limit string) []string {
	var parts []string
	_, _, err := expandHostKey(limit)
	switch {
	case strings.Contains(limit, ","):
		parts = strings.Split(limit, ",")
	case hostLike.MatchString(limit), err == nil && strings.Count(limit, ":") > 1:
		parts = []string{limit}
	default:
		parts = element.FindAllString(limit, -1)
	}
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// match lists the hosts that one element names, without its & or !.
func (inv *Inventory) match(pattern string) (map[string]bool, *Problem) {
	refuse := func(what, next string) (map[string]bool, *Problem) { return nil, &Problem{What: what, Next: next} }
	if pattern == "" {
		return refuse("an element of the limit is empty", "")
	}
	if _, ok := inv.byName[pattern]; ok {
		return map[string]bool{pattern: true}, nil
	}
	expr, pick := pattern, func(h []string) ([]string, bool) { return h, true }
	if m := subscript.FindStringSubmatch(pattern); m != nil && pattern[0] != '~' {
		expr, pick = m[1], picker(m)
	}
	re, err := compile(expr)
	if err != nil {
		return refuse(fmt.Sprintf("%q is no pattern: %v", pattern, err), "")
	}
	names, groups := inv.names(expr, re)
	names, ok := pick(names)
	if ok && len(names) > 0 {
		out := make(map[string]bool, len(names))
		for _, n := range names {
			out[n] = true
		}
		return out, nil
	}
	switch {
	case len(groups) > 0 && expr == pattern:
		return refuse(fmt.Sprintf("%q names a group without hosts", pattern), "")
	case !ok:
		return refuse(fmt.Sprintf("%q takes hosts that are not there", pattern), "")
	case expr != pattern:
		return refuse(fmt.Sprintf("%q matches no host or group", pattern),
			fmt.Sprintf("[…] at the end counts the hosts that %q matches; for a set of characters write ~%s", expr, pattern))
	}
	return refuse(fmt.Sprintf("%q matches no host or group", pattern), meant(pattern, inv.allNames()))
}

// names lists hosts that an expression matches, by group and by name, and the groups that it matched.
func (inv *Inventory) names(expr string, re *regexp.Regexp) (names, groups []string) {
	seen := map[string]bool{}
	put := func(n string) {
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	for _, gr := range inv.g.order {
		if re.MatchString(gr.name) {
			groups = append(groups, gr.name)
			for _, h := range hostsOf(gr) {
				put(h.name)
			}
		}
	}
	if len(groups) == 0 || expr[0] == '~' || globMark.MatchString(expr) {
		for _, h := range inv.g.hostOrder {
			if re.MatchString(h.name) {
				put(h.name)
			}
		}
	}
	return names, groups
}

func (inv *Inventory) allNames() []string {
	var out []string
	for _, g := range inv.g.order {
		out = append(out, g.name)
	}
	for _, h := range inv.hosts {
		out = append(out, h.Name)
	}
	return out
}

// picker takes the part of a list that a subscript names; both ends of x:y count. false: nothing is there.
func picker(m []string) func([]string) ([]string, bool) {
	return func(hosts []string) ([]string, bool) {
		if m[2] != "" {
			i, err := strconv.Atoi(m[2])
			if i < 0 {
				i += len(hosts)
			}
			if err != nil || i < 0 || i >= len(hosts) {
				return nil, len(hosts) == 0
			}
			return hosts[i : i+1], true
		}
		from, err := strconv.Atoi(m[3])
		to := len(hosts) - 1
		if err == nil && m[5] != "" {
			to, err = strconv.Atoi(m[5])
		}
		if to = min(to, len(hosts)-1); err != nil || from > to {
			return nil, len(hosts) == 0
		}
		return slices.Clone(hosts[from : to+1]), true
	}
}

// compile turns ~regex (matched from the start, as Ansible does) or a glob (matched whole) into a regular expression.
func compile(expr string) (*regexp.Regexp, error) {
	if expr[0] == '~' {
		re, err := regexp.Compile(`^(?:` + expr[1:] + `)`)
		if err != nil {
			return nil, fmt.Errorf("%w (Go's regular expressions have no look-around and no back-references)", err)
		}
		return re, nil
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	rs := []rune(expr)
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		case '[':
			set, next := globSet(rs, i)
			b.WriteString(set)
			i = next
		default:
			b.WriteString(regexp.QuoteMeta(string(rs[i])))
		}
	}
	b.WriteString(`$`)
	return regexp.Compile(b.String())
}

// globSet translates [abc], [a-z] or [!abc] that starts at i; without an end the bracket is a plain character.
func globSet(rs []rune, i int) (re string, last int) {
	j := i + 1
	if j < len(rs) && rs[j] == '!' {
		j++
	}
	if j < len(rs) && rs[j] == ']' {
		j++
	}
	for j < len(rs) && rs[j] != ']' {
		j++
	}
	if j >= len(rs) {
		return `\[`, i
	}
	body := string(rs[i+1 : j])
	not := ""
	if strings.HasPrefix(body, "!") {
		not, body = "^", body[1:]
	}
	body = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`, `~`, `\~`).Replace(body)
	return `[` + not + body + `]`, j
}
