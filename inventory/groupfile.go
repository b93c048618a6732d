package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// groupFile reads an inventory in Ansible's YAML form: a mapping of group → hosts, vars, children.
type groupFile struct {
	*collector
	g    *graph
	file string
}

func (f *groupFile) at(n *yaml.Node) place { return at(f.file, n) }

// read adds the whole file to the graph.
func (f *groupFile) read(root *yaml.Node) {
	root = deref(root)
	if root.Kind != yaml.MappingNode {
		f.add(f.at(root), "an inventory is a mapping of groups", "write for example\n           all:\n             hosts:\n               node-a:")
		return
	}
	entries := f.pairs(f.file, root)
	for _, p := range entries {
		if deref(p.key).Value == "plugin" && scalarKind(deref(p.value)) != "null" {
			f.add(f.at(p.key), fmt.Sprintf("this is an inventory plugin's configuration (%s), not an inventory", deref(p.value).Value),
				fmt.Sprintf(exportHint, f.file))
			return
		}
	}
	for _, p := range entries {
		if key := deref(p.key); holder(key.Value) && deref(p.value).Kind != yaml.MappingNode {
			continue // a place for anchors
		}
		f.group(p, nil)
	}
}

// holder reports whether a top-level key only holds anchors: by convention x-… or .…
func holder(key string) bool {
	return strings.HasPrefix(key, "x-") || strings.HasPrefix(key, ".")
}

// group reads one group and what is below it, as a child of parent if there is one.
func (f *groupFile) group(p pair, parent *group) {
	name, ok := f.name(f.file, "group", p.key)
	if !ok {
		return
	}
	body := deref(p.value)
	if body.Kind != yaml.MappingNode && scalarKind(body) != "null" {
		f.add(f.at(p.value), fmt.Sprintf("group %s must be a mapping with hosts, vars or children", name), "")
		return
	}
	gr := f.g.group(name, f.at(p.key))
	f.partGroup(name, f.at(p.key))
	if parent != nil {
		if name == "all" || reaches(gr, parent) {
			f.add(f.at(p.key), fmt.Sprintf("group %s would be below itself: %s is already under it", name, parent.name), "")
			return
		}
		link(parent, gr)
	}
	if body.Kind != yaml.MappingNode {
		return
	}
	for _, section := range f.pairs(f.file, body) {
		f.section(gr, section)
	}
}

func (f *groupFile) section(gr *group, p pair) {
	key := deref(p.key).Value
	switch key {
	case "hosts", "vars", "children":
	default:
		f.unknownSection(gr, key, p)
		return
	}
	v := deref(p.value)
	var entries []pair
	switch {
	case v.Kind == yaml.MappingNode:
		entries = f.pairs(f.file, v)
	case scalarKind(v) == "null" && v.Kind == yaml.ScalarNode:
		return
	case v.Kind == yaml.ScalarNode && scalarKind(v) == "str": // one name alone is allowed
		entries = []pair{{v, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: v.Line, Column: v.Column}}}
	default:
		example := "node-a:"
		if v.Kind == yaml.SequenceNode && len(v.Content) > 0 && v.Content[0].Kind == yaml.ScalarNode {
			example = v.Content[0].Value + ":"
		}
		f.add(f.at(p.value), fmt.Sprintf("%s of group %s must be a map, not a list", key, gr.name), fmt.Sprintf("write `%s` instead of `- %s`", example, strings.TrimSuffix(example, ":")))
		return
	}
	for _, e := range entries {
		switch key {
		case "vars":
			f.groupVar(gr, e)
		case "children":
			f.group(e, gr)
		case "hosts":
			f.hostKey(gr, e)
		}
	}
}

// unknownSection: Ansible skips what it does not know. What looks like a slip would lose hosts, so it is refused.
func (f *groupFile) unknownSection(gr *group, key string, p pair) {
	if n := nearest(key, []string{"hosts", "vars", "children"}); n != "" {
		f.add(f.at(p.key), fmt.Sprintf("group %s has no section %q", gr.name, key), "did you mean "+n+"?")
		return
	}
	if deref(p.value).Kind == yaml.MappingNode && !holder(gr.name) {
		f.add(f.at(p.key), fmt.Sprintf("group %s has no section %q, and Ansible would skip it with everything in it", gr.name, key),
			"groups below a group go under children:, hosts under hosts:, variables under vars:")
		return
	}
	if !holder(gr.name) {
		f.warn(f.at(p.key), fmt.Sprintf("%q in group %s is skipped: only hosts, vars and children mean something here", key, gr.name), "")
	}
}

func (f *groupFile) groupVar(gr *group, e pair) {
	name, ok := f.name(f.file, "variable", e.key)
	if !ok {
		return
	}
	if name != "ansible_group_priority" {
		gr.vars = append(gr.vars, setting{name, e.value, f.at(e.value)})
		return
	}
	v, err := scalarOf(e.value)
	if err == nil {
		switch n := v.(type) {
		case int:
			gr.priority = n
			return
		case string:
			if i, err := strconv.Atoi(n); err == nil {
				gr.priority = i
				return
			}
		}
	}
	f.add(f.at(e.value), "ansible_group_priority must be a whole number", "")
}

// scalarOf is the value of a node that must be a scalar.
func scalarOf(n *yaml.Node) (any, error) {
	n = deref(n)
	if n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("a list or mapping")
	}
	return scalar(n)
}

func (f *groupFile) hostKey(gr *group, e pair) {
	key, ok := f.name(f.file, "host", e.key)
	if !ok {
		return
	}
	names, port, err := expandHostKey(key)
	if err != nil {
		f.add(f.at(e.key), err.Error(), "")
		return
	}
	body := deref(e.value)
	var vars []setting
	switch {
	case body.Kind == yaml.MappingNode:
		for _, p := range f.pairs(f.file, body) {
			if name, ok := f.name(f.file, "variable", p.key); ok {
				vars = append(vars, setting{name, p.value, f.at(p.value)})
			}
		}
	case scalarKind(body) == "null" && body.Kind == yaml.ScalarNode:
	default:
		f.add(f.at(e.value), fmt.Sprintf("host %s must be followed by nothing or by its variables", key), "")
		return
	}
	for _, n := range names {
		if len(f.g.hostOrder) >= mostHosts {
			f.add(f.at(e.key), fmt.Sprintf("more than %d hosts", mostHosts), "")
			return
		}
		f.host(gr, n, port, vars, f.at(e.key))
	}
}

func (f *groupFile) host(gr *group, name string, port int, vars []setting, p place) {
	h, fresh := f.g.host(name, p)
	if fresh && port > 0 {
		h.port = port
		h.vars = append(h.vars, portSetting(port, p))
	}
	if !fresh && port > 0 && port != h.port {
		f.add(p, fmt.Sprintf("host %s was named before on line %d, so Ansible ignores the port %d here", name, h.at.line, port),
			fmt.Sprintf("write ansible_port: %d", port))
	}
	gr.addHost(h)
	h.vars = append(h.vars, vars...)
}

// portSetting is the variable that a port behind a host's name sets.
func portSetting(port int, p place) setting {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(port), Line: p.line, Column: p.column}
	return setting{"ansible_port", n, p}
}

// partGroup warns of a group that looks like one of ours and gives no part.
func (c *collector) partGroup(name string, p place) {
	if !strings.HasPrefix(name, "kibo_") {
		return
	}
	if _, ok := groupPart(name); !ok {
		c.warn(p, fmt.Sprintf("group %s gives its hosts no part", name), meant(name, partGroups()))
	}
}
