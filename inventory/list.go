package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// List is the inventory in the shape of `ansible-inventory --list`, as indented JSON with sorted keys: all of it, or only these hosts,
// as newer versions of Ansible do with --limit. Secrets are replaced by "(not shown)" unless showSecrets.
func (inv *Inventory) List(showSecrets bool, only ...Host) ([]byte, error) {
	hostvars := map[string]any{}
	if len(only) == 0 {
		only = inv.hosts
	}
	in := map[string]bool{}
	for _, h := range only {
		in[h.Name] = true
		vars := map[string]any{}
		for n, v := range h.Vars {
			if Secret(n) && !showSecrets {
				vars[n] = "(not shown)"
				continue
			}
			vars[n] = asPython(v.Value)
		}
		if len(vars) > 0 {
			hostvars[h.Name] = vars
		}
	}
	out := map[string]any{"_meta": map[string]any{"hostvars": hostvars}}
	for _, g := range inv.Groups() {
		m := map[string]any{}
		if hosts := slices.DeleteFunc(g.Hosts, func(n string) bool { return !in[n] }); len(hosts) > 0 {
			m["hosts"] = hosts
		}
		if len(g.Children) > 0 {
			m["children"] = g.Children
		}
		if len(m) > 0 {
			out[g.Name] = m
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "    ")
	err := enc.Encode(out)
	return b.Bytes(), err
}

// asPython spells numbers as Python's json does, which Ansible uses: a float always shows that it is one.
func asPython(v any) any {
	switch t := v.(type) {
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = asPython(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = asPython(e)
		}
		return out
	case float64:
		format := byte('f')
		if a := math.Abs(t); a != 0 && (a < 1e-4 || a >= 1e16) {
			format = 'e'
		}
		s := strconv.FormatFloat(t, format, -1, 64)
		if format == 'f' && !strings.Contains(s, ".") {
			s += ".0"
		}
		return json.Number(s)
	}
	return v
}

// Setting is one place where a variable of a host was set.
type Setting struct {
	Name  string
	Scope string // "group kibo_node", "group_vars of all", "host node-a", "host_vars of node-a", "extra variables"
	Value Value  // Value.Value is "(not shown)" for a secret
}

// Explain lists where the variables of a host come from: by name, and for each name the winner first and then what it
// overrode. name "" lists all; every spelling of a known variable counts.
func (inv *Inventory) Explain(hostName, name string) ([]Setting, error) {
	h := inv.g.hosts[hostName]
	if h == nil {
		next := meant(hostName, inv.allNames())
		return nil, fmt.Errorf("cannot explain host %s: it is not in the inventory; %s", hostName, next)
	}
	names := []string{name}
	if v, ok := Known(name); ok {
		names = v.spellings()
	}
	found := map[string][]Setting{}
	for _, l := range inv.layers(h) {
		for _, s := range l.vars {
			if name != "" && !slices.Contains(names, s.name) {
				continue
			}
			v := newCollector().any(s.at.file, s.node)
			if Secret(s.name) {
				v = "(not shown)"
			}
			set := Setting{s.name, l.scope, Value{asPython(v), s.at.file, s.at.line, s.at.column}}
			found[s.name] = append([]Setting{set}, found[s.name]...)
		}
	}
	if name != "" && len(found) == 0 {
		names := sortedKeys(inv.hosts[inv.byName[hostName]].Vars)
		next := strings.TrimSpace("nothing sets it; " + meant(name, names))
		return nil, fmt.Errorf("cannot explain variable %s of host %s: %s", name, hostName, strings.TrimSuffix(next, ";"))
	}
	var out []Setting
	for _, n := range sortedKeys(found) {
		out = append(out, found[n]...)
	}
	return out, nil
}
