package inventory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"gopkg.in/yaml.v3"
)

// item is the effective value of a variable on one host.
type item struct {
	setting
	value any
}

// part is a value inside an item, with its own place.
func (i item) part(n *yaml.Node, v any) item {
	return item{setting{i.name, n, place{i.at.file, n.Line, n.Column}}, v}
}

// binding reads the variables of one host into typed fields; problems go to c.
type binding struct {
	c     *collector
	later *collector // what is understood, and refused before connecting
	host  *Host
	items map[string]item
}

func (b *binding) fail(i item, what, next string) {
	b.c.add(i.at, i.name+": "+what, next, b.host.Name)
}

// lossy says what YAML makes of an unquoted number that was meant as text.
func lossy(n *yaml.Node) string {
	v, err := scalar(n)
	if _, text := v.(string); err != nil || text {
		return fmt.Sprintf("%s unquoted is text to some readers and a number to others: write %q", n.Value, n.Value)
	}
	return fmt.Sprintf("%s unquoted is the number %v: write %q", n.Value, v, n.Value)
}

// text reads a value that must be text: an unquoted number, boolean or date has already lost what was written.
func (b *binding) text(i item) (string, bool) {
	n := deref(i.node)
	secret := holdsSecret(i.name)
	switch v := i.value.(type) {
	case string:
		if plain(n) && (likeNum.MatchString(n.Value) || scalarKind(n) == "date") {
			if secret {
				b.fail(i, "unquoted, this is a number or date to some readers of YAML", "quote it")
			} else {
				b.fail(i, "must be text", lossy(n))
			}
			return "", false
		}
		if v == "" {
			b.fail(i, "is empty", "leave it out")
			return "", false
		}
		return v, true
	case nil:
		b.fail(i, "has no value", "leave it out")
	case []any, map[string]any:
		b.fail(i, "must be text", "")
	default:
		if secret {
			b.fail(i, "must be text; unquoted this is a number or boolean", "quote it")
		} else {
			b.fail(i, fmt.Sprintf("must be text, and %s unquoted is %s", n.Value, described(scalarKind(n), i.value)), fmt.Sprintf("write %q", n.Value))
		}
	}
	return "", false
}

// word reads text that becomes a name, an address or a path.
func (b *binding) word(i item) (string, bool) {
	s, ok := b.text(i)
	return s, ok && b.c.clean(i.at, i.name, s)
}

// path reads an absolute path on a host.
func (b *binding) path(i item) (string, bool) {
	s, ok := b.word(i)
	if ok && (!strings.HasPrefix(s, "/") || strings.Contains(s+"/", "/../") || strings.Contains(s, "//") || s == "/") {
		b.fail(i, fmt.Sprintf("%q is no absolute path of a file or directory", s), "")
		return "", false
	}
	return s, ok
}

// number reads a whole number in decimal, as a number or as text.
func (b *binding) number(i item, low, high int) (int, bool) {
	n := deref(i.node)
	if n.Kind == yaml.ScalarNode && scalarKind(n) != "bool" && scalarKind(n) != "null" {
		t := n.Value
		if v, err := strconv.Atoi(t); err == nil && strconv.Itoa(v) == t {
			if v < low || v > high {
				b.fail(i, fmt.Sprintf("%d is not between %d and %d", v, low, high), "")
				return 0, false
			}
			return v, true
		}
		next := "write a plain decimal number"
		if v, ok := i.value.(int); ok && plain(n) {
			next = fmt.Sprintf("YAML reads %s as %d; write a plain decimal number", t, v)
		}
		b.fail(i, fmt.Sprintf("%s is no plain decimal number", t), next)
		return 0, false
	}
	b.fail(i, "must be a number", "")
	return 0, false
}

// boolean reads what Ansible takes for yes and no.
func (b *binding) boolean(i item) (bool, bool) {
	switch v := i.value.(type) {
	case bool:
		return v, true
	case int:
		if v == 0 || v == 1 {
			return v == 1, true
		}
	case string:
		switch strings.ToLower(v) {
		case "yes", "y", "true", "t", "on", "1":
			return true, true
		case "no", "n", "false", "f", "off", "0":
			return false, true
		}
	}
	b.fail(i, "must be yes or no", "")
	return false, false
}

// duration reads Go's form (90s, 1h30m) or whole seconds.
func (b *binding) duration(i item) (time.Duration, bool) {
	if s, ok := i.value.(string); ok {
		if d, err := time.ParseDuration(s); err == nil {
			if d <= 0 {
				b.fail(i, fmt.Sprintf("%s is no time to wait", s), "")
				return 0, false
			}
			return d, true
		}
		if _, err := strconv.Atoi(s); err != nil {
			b.fail(i, fmt.Sprintf("%q is no duration", s), "write for example 90s, 15m or 1h30m")
			return 0, false
		}
	}
	n, ok := b.number(i, 1, math.MaxInt32)
	return time.Duration(n) * time.Second, ok
}

// argv reads a command: a list of words, or text that is split as a shell splits quotes.
func (b *binding) argv(i item) ([]string, bool) {
	var words []string
	n := deref(i.node)
	switch v := i.value.(type) {
	case []any:
		for k, e := range v {
			p := i.part(deref(n.Content[k]), e)
			if num, ok := e.(int); ok && strconv.Itoa(num) == p.node.Value {
				words = append(words, p.node.Value)
				continue
			}
			s, ok := e.(string)
			if !ok || (s != "" && plain(p.node) && likeNum.MatchString(s)) {
				if s, ok = b.text(p); !ok {
					return nil, false
				}
			}
			words = append(words, s)
		}
	case string:
		var err error
		if words, err = splitWords(v); err != nil {
			b.fail(i, "cannot be split into words: "+err.Error(), "write it as a list")
			return nil, false
		}
	default:
		b.fail(i, "must be a command: a list of words, or text", "")
		return nil, false
	}
	if len(words) == 0 || words[0] == "" {
		b.fail(i, "is an empty command", "")
		return nil, false
	}
	return words, true
}

// each calls f for the entries of a mapping in order of their keys, which must be among names (nil: any name).
func (b *binding) each(i item, names []string, f func(key string, i item)) {
	n := deref(i.node)
	if n.Kind != yaml.MappingNode {
		b.fail(i, "must be a mapping", "")
		return
	}
	entries := map[string]item{}
	for _, p := range b.c.pairs(i.at.file, n) {
		key := b.c.keyText(i.at.file, p.key)
		e := i.part(p.value, b.c.any(i.at.file, p.value))
		e.name = i.name + "." + key
		if names != nil && !contains(names, key) {
			e.at = place{i.at.file, deref(p.key).Line, deref(p.key).Column}
			next := meant(key, names)
			if next == "" {
				next = "one of " + strings.Join(names, ", ")
			}
			e.name = i.name
			b.fail(e, fmt.Sprintf("there is no %q", key), next)
			continue
		}
		entries[key] = e
	}
	for _, k := range sortedKeys(entries) {
		f(k, entries[k])
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// parts reads kibo_parts: a list, or words separated by commas or spaces.
func (b *binding) parts(i item) []release.Part {
	var out []release.Part
	add := func(s string, at item) {
		if p := release.Part(s); p.Valid() {
			out = append(out, p)
			return
		}
		b.fail(at, fmt.Sprintf("there is no part %q", s), "the parts are "+strings.Join(partNames(), ", "))
	}
	n := deref(i.node)
	switch v := i.value.(type) {
	case []any:
		for k, e := range v {
			add(fmt.Sprint(e), i.part(deref(n.Content[k]), e))
		}
	case string:
		for _, s := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' }) {
			add(s, i)
		}
	default:
		b.fail(i, "must be a list of parts", "for example [ctrl, node]")
	}
	return out
}

func partNames() []string {
	var out []string
	for _, p := range release.Parts() {
		out = append(out, string(p))
	}
	return out
}
