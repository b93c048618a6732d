package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

var errVault = errors.New("encrypted with Ansible Vault")

// Marks that ansible-inventory puts around values which JSON cannot hold.
const (
	vaultMark  = "__ansible_vault"
	unsafeMark = "__ansible_unsafe"
)

// pair is one entry of a mapping.
type pair struct{ key, value *yaml.Node }

// deref follows aliases.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// pairs lists the entries of a mapping with merge keys resolved: merged ones first, explicit ones winning over them
// wherever they stand, as Ansible does.
func (c *collector) pairs(file string, n *yaml.Node) []pair {
	var out []pair
	index := map[string]int{}
	put := func(p pair) {
		k := deref(p.key)
		if i, ok := index[k.Value]; ok && k.Kind == yaml.ScalarNode {
			out[i] = p
			return
		}
		index[k.Value] = len(out)
		out = append(out, p)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		for _, p := range c.merged(file, n.Content[i+1]) {
			put(p)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			put(pair{n.Content[i], n.Content[i+1]})
		}
	}
	return out
}

// merged lists the entries that a merge key brings: of a mapping, or of several, the first of which wins.
func (c *collector) merged(file string, n *yaml.Node) []pair {
	v := deref(n)
	switch v.Kind {
	case yaml.MappingNode:
		return c.pairs(file, v)
	case yaml.SequenceNode:
		var all []pair
		for i := len(v.Content) - 1; i >= 0; i-- {
			m := deref(v.Content[i])
			if m.Kind != yaml.MappingNode {
				c.add(at(file, v.Content[i]), "a merge key takes mappings only", "")
				continue
			}
			all = append(all, c.pairs(file, m)...)
		}
		return all
	}
	c.add(at(file, n), "a merge key takes a mapping or a list of mappings", "")
	return nil
}

// any turns a node into string, bool, int, float64, []any, map[string]any or nil. An encrypted value becomes the
// mapping that ansible-inventory prints for it, so that only those who want to use it must complain.
func (c *collector) any(file string, n *yaml.Node) any {
	n = deref(n)
	switch n.Kind {
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, e := range n.Content {
			out = append(out, c.any(file, e))
		}
		return out
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for _, p := range c.pairs(file, n) {
			out[c.keyText(file, p.key)] = c.any(file, p.value)
		}
		if s, ok := out[unsafeMark].(string); ok && len(out) == 1 {
			return s
		}
		return out
	}
	v, err := scalar(n)
	if errors.Is(err, errVault) {
		return map[string]any{vaultMark: n.Value}
	}
	if err != nil {
		c.add(at(file, n), err.Error(), "")
	}
	return v
}

// keyText is a key inside a value, as JSON would write it.
func (c *collector) keyText(file string, k *yaml.Node) string {
	k = deref(k)
	if k.Kind != yaml.ScalarNode {
		c.add(at(file, k), "a key must be plain text", "")
		return ""
	}
	v, err := scalar(k)
	if err != nil {
		c.add(at(file, k), err.Error(), "")
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return k.Value
	}
	return string(b)
}

// name is a key that names a group, host or variable: text, without characters that nobody sees.
func (c *collector) name(file, what string, k *yaml.Node) (string, bool) {
	k = deref(k)
	if k.Kind != yaml.ScalarNode {
		c.add(at(file, k), fmt.Sprintf("a %s must be named by plain text", what), "")
		return "", false
	}
	if kind := scalarKind(k); kind != "str" && kind != "!unsafe" {
		v, err := scalar(k)
		if err != nil {
			v = k.Value
		}
		c.add(at(file, k), fmt.Sprintf("%q unquoted is no text in YAML but %s, so it names no %s", k.Value, described(kind, v), what),
			fmt.Sprintf("quote it: %q", k.Value))
		return "", false
	}
	return k.Value, c.clean(at(file, k), what+" name", k.Value)
}

// clean refuses names and addresses with characters that nobody sees.
func (c *collector) clean(p place, what, s string) bool {
	if s == "" {
		c.add(p, "empty "+what, "")
		return false
	}
	for _, r := range s {
		if hidden(r) {
			c.add(p, fmt.Sprintf("the %s %q holds the invisible character U+%04X", what, s, r), "retype it")
			return false
		}
	}
	if strings.TrimSpace(s) != s {
		c.add(p, fmt.Sprintf("the %s %q begins or ends with a space", what, s), "")
		return false
	}
	return true
}

// described says in words what a plain scalar turned into.
func described(kind string, v any) string {
	switch kind {
	case "null":
		return "nothing (null)"
	case "bool":
		return fmt.Sprintf("the boolean %v", v)
	case "date", "timestamp":
		return "a date"
	}
	return fmt.Sprintf("the number %v", v)
}

// isVault reports whether a converted value is an encrypted one.
func isVault(v any) bool {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return false
	}
	_, ok = m[vaultMark]
	return ok
}

// isTemplate reports whether a value, or anything inside it, waits for a template engine.
func isTemplate(n *yaml.Node) bool {
	n = deref(n)
	if n.Kind != yaml.ScalarNode {
		if n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == unsafeMark {
			return false
		}
		for _, e := range n.Content {
			if isTemplate(e) {
				return true
			}
		}
		return false
	}
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() == "!unsafe" {
		return false // Ansible, too, takes it as it stands
	}
	return strings.Contains(n.Value, "{{") || strings.Contains(n.Value, "{%") || strings.Contains(n.Value, "{#")
}
