package inventory

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// listing reads what `ansible-inventory --list` and inventory programs print: group → {hosts, vars, children} with
// hosts as a list, and _meta.hostvars.
type listing struct {
	*collector
	g    *graph
	file string
	// vars asks the program for one host's variables, if it printed no _meta.hostvars. May be nil.
	vars  func(host string) (document, bool)
	hosts []*host
}

func (l *listing) at(n *yaml.Node) place { return at(l.file, n) }

// isListing tells a listing from an inventory in Ansible's YAML form that happens to be JSON.
func isListing(root *yaml.Node) bool {
	root = deref(root)
	if root.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "_meta" {
			return true
		}
	}
	return false
}

func (l *listing) read(root *yaml.Node) {
	root = deref(root)
	if root.Kind != yaml.MappingNode {
		l.add(l.at(root), "a listing is a mapping of groups", "print what ansible-inventory --list prints")
		return
	}
	var hostvars *yaml.Node
	for _, p := range l.pairs(l.file, root) {
		if p.key.Value != "_meta" {
			l.group(p)
			continue
		}
		if m := deref(p.value); m.Kind == yaml.MappingNode {
			for _, q := range l.pairs(l.file, m) {
				if q.key.Value == "hostvars" {
					hostvars = deref(q.value)
				}
			}
		}
	}
	if hostvars == nil {
		l.ask()
		return
	}
	if hostvars.Kind != yaml.MappingNode {
		l.add(l.at(hostvars), "_meta.hostvars must be a mapping of hosts", "")
		return
	}
	for _, p := range l.pairs(l.file, hostvars) {
		h := l.g.hosts[deref(p.key).Value]
		if h == nil {
			l.warn(l.at(p.key), fmt.Sprintf("variables for %q, which is in no group of this listing", p.key.Value), "")
			continue
		}
		l.hostVars(h, p.value)
	}
}

// ask gets the variables host by host, as programs of the old kind want it.
func (l *listing) ask() {
	if l.vars == nil {
		return
	}
	for _, h := range l.hosts {
		if doc, ok := l.vars(h.name); ok && doc.root != nil {
			l.hostVars(h, doc.root)
		}
	}
}

func (l *listing) hostVars(h *host, n *yaml.Node) {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		l.add(l.at(n), fmt.Sprintf("variables of %s must be a mapping", h.name), "")
		return
	}
	for _, p := range l.pairs(l.file, n) {
		h.vars = append(h.vars, setting{deref(p.key).Value, p.value, l.at(p.value)})
	}
}

func (l *listing) group(p pair) {
	name := deref(p.key).Value
	if !l.clean(l.at(p.key), "group name", name) {
		return
	}
	gr := l.g.group(name, l.at(p.key))
	l.partGroup(name, l.at(p.key))
	body := deref(p.value)
	if body.Kind == yaml.SequenceNode {
		l.members(gr, body)
		return
	}
	if body.Kind != yaml.MappingNode {
		l.add(l.at(p.value), fmt.Sprintf("group %s must be a mapping or a list of hosts", name), "")
		return
	}
	known := false
	for _, q := range l.pairs(l.file, body) {
		v := deref(q.value)
		switch q.key.Value {
		case "hosts":
			known = true
			l.members(gr, v)
		case "vars":
			known = true
			l.groupVars(gr, v)
		case "children":
			known = true
			l.children(gr, v)
		}
	}
	if !known && len(body.Content) > 0 { // the shortest form: a host with its variables
		if h := l.host(gr, name, l.at(p.key)); h != nil {
			l.hostVars(h, body)
		}
	}
}

func (l *listing) groupVars(gr *group, v *yaml.Node) {
	if v.Kind != yaml.MappingNode {
		l.add(l.at(v), fmt.Sprintf("vars of group %s must be a mapping", gr.name), "")
		return
	}
	f := groupFile{collector: l.collector, g: l.g, file: l.file}
	for _, p := range l.pairs(l.file, v) {
		f.groupVar(gr, p)
	}
}

func (l *listing) members(gr *group, v *yaml.Node) {
	for _, n := range l.names(gr, "hosts", v) {
		l.host(gr, n.Value, l.at(n))
	}
}

func (l *listing) host(gr *group, name string, p place) *host {
	if !l.clean(p, "host name", name) {
		return nil
	}
	if strings.ContainsAny(name, "[]") {
		l.add(p, fmt.Sprintf("%q is no host name", name), "")
		return nil
	}
	h, _ := l.g.host(name, p)
	gr.addHost(h)
	l.hosts = append(l.hosts, h)
	return h
}

func (l *listing) children(gr *group, v *yaml.Node) {
	for _, n := range l.names(gr, "children", v) {
		if !l.clean(l.at(n), "group name", n.Value) {
			continue
		}
		child := l.g.group(n.Value, l.at(n))
		if child.name == "all" || reaches(child, gr) {
			l.add(l.at(n), fmt.Sprintf("group %s would be below itself: %s is already under it", n.Value, gr.name), "")
			continue
		}
		link(gr, child)
	}
}

// names lists the members of a list of text.
func (l *listing) names(gr *group, what string, v *yaml.Node) []*yaml.Node {
	if v.Kind != yaml.SequenceNode {
		l.add(l.at(v), fmt.Sprintf("%s of group %s must be a list", what, gr.name), "")
		return nil
	}
	var out []*yaml.Node
	for _, n := range v.Content {
		if n = deref(n); n.Kind != yaml.ScalarNode || scalarKind(n) != "str" {
			l.add(l.at(n), fmt.Sprintf("%s of group %s must be text", what, gr.name), "")
			continue
		}
		out = append(out, n)
	}
	return out
}
