package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"gopkg.in/yaml.v3"
)

// Inventory is what the sources said together. It does not change after Load.
type Inventory struct {
	*collector
	g          *graph
	groupFiles map[string][]varsFile // by group, in source order
	hostFiles  map[string][]varsFile // by host, in source order
	extra      []setting
	sources    int
	later      *collector
	hosts      []Host
	byName     map[string]int // index in hosts
}

// Group is a group with the names of its own hosts and child groups, each in the order of writing.
type Group struct {
	Name     string
	Hosts    []string
	Children []string
}

// Hosts lists every host in inventory order, which is Ansible's: level by level down from the group "all".
// Hosts that run no part are listed too; see Host.Problem before reaching for one.
func (inv *Inventory) Hosts() []Host { return slices.Clone(inv.hosts) }

// Host finds a host by its inventory name.
func (inv *Inventory) Host(name string) (Host, bool) {
	i, ok := inv.byName[name]
	if !ok {
		return Host{}, false
	}
	return inv.hosts[i], true
}

// Groups lists every group in the same order, "all" first.
func (inv *Inventory) Groups() []Group {
	var out []Group
	for _, gr := range descend(inv.g.groups["all"]) {
		g := Group{Name: gr.name}
		if gr.name != "all" {
			for _, h := range gr.hosts {
				g.Hosts = append(g.Hosts, h.name)
			}
		}
		for _, c := range gr.children {
			g.Children = append(g.Children, c.name)
		}
		out = append(out, g)
	}
	return out
}

// Warnings lists what works but may not be meant: skipped keys, variables without effect, groups that give no part.
func (inv *Inventory) Warnings() Problems { return slices.Clone(inv.warnings) }

// Refused lists values of the fleet's hosts that Ansible accepts and that nothing here honours, or not yet. A command that is about to
// connect must not go on with any.
func (inv *Inventory) Refused() Problems { return slices.Clone(inv.later.problems) }

// layer is a set of variables of one strength.
type layer struct {
	scope string
	vars  []setting
}

// layers lists what is said of a host, weakest first. This order is Ansible's, with its trap: any group_vars file beats
// every variable that an inventory file gives to any group.
func (inv *Inventory) layers(h *host) []layer {
	all := inv.g.groups["all"]
	groups := byPrecedence(h.ancestors())
	out := []layer{{"group all", all.vars}}
	for _, g := range groups {
		out = append(out, layer{"group " + g.name, g.vars})
	}
	for _, f := range inv.groupFiles["all"] {
		out = append(out, layer{"group_vars of all", f.vars})
	}
	// Files are merged source by source; within one source by the groups' strength.
	out = append(out, inv.groupFileLayers(groups)...)
	out = append(out, layer{"host " + h.name, h.vars})
	for _, f := range inv.hostFiles[h.name] {
		out = append(out, layer{"host_vars of " + h.name, f.vars})
	}
	return append(out, layer{"extra variables", inv.extra})
}

func (inv *Inventory) groupFileLayers(groups []*group) []layer {
	var out []layer
	for source := range inv.sources {
		for _, g := range groups {
			for _, f := range inv.groupFiles[g.name] {
				if f.source == source {
					out = append(out, layer{"group_vars of " + g.name, f.vars})
				}
			}
		}
	}
	return out
}

// resolve applies precedence, finds the parts, and types the variables of every host of the fleet.
func (inv *Inventory) resolve() {
	table := Variables()
	inv.checkNames(table)
	order := hostsOf(inv.g.groups["all"])
	inv.hosts = make([]Host, 0, len(order))
	inv.byName = make(map[string]int, len(order))
	values := map[*yaml.Node]any{}
	items := make([]map[string]item, len(order))
	inv.later = newCollector()
	inv.later.texts = inv.texts
	fleet := false
	for i, h := range order {
		items[i] = inv.items(h, values)
		inv.byName[h.name] = i
		inv.hosts = append(inv.hosts, inv.host(h, items[i]))
		fleet = fleet || len(inv.hosts[i].Parts) > 0
	}
	for i := range inv.hosts {
		h := &inv.hosts[i]
		b := binding{c: inv.collector, later: inv.later, host: h, items: items[i]}
		if fleet && len(h.Parts) == 0 {
			b.c, b.later = newCollector(), newCollector() // nobody will reach for it; what is wrong with it is kept with it
			b.bind(table)
			if len(b.c.problems) > 0 {
				h.Problem, h.Login = b.c.problems, Login{}
			}
			continue
		}
		b.bind(table)
	}
	inv.checkFleet(fleet)
}

// items are the effective variables of a host.
func (inv *Inventory) items(h *host, values map[*yaml.Node]any) map[string]item {
	out := map[string]item{}
	for _, l := range inv.layers(h) {
		for _, s := range l.vars {
			v, ok := values[s.node]
			if !ok {
				v = inv.any(s.at.file, s.node)
				values[s.node] = v
			}
			out[s.name] = item{setting: s, value: v}
		}
	}
	return out
}

// host fills in what needs no typing.
func (inv *Inventory) host(h *host, items map[string]item) Host {
	out := Host{Name: h.name, Vars: make(map[string]Value, len(items))}
	for _, g := range h.ancestors() {
		out.Groups = append(out.Groups, g.name)
	}
	slices.Sort(out.Groups)
	for name, i := range items {
		out.Vars[name] = Value{Value: i.value, File: i.at.file, Line: i.at.line, Column: i.at.column}
	}
	has := map[release.Part]bool{}
	for _, g := range out.Groups {
		if p, ok := groupPart(g); ok {
			has[p] = true
		}
	}
	if i, ok := items["kibo_parts"]; ok {
		b := binding{c: inv.collector, host: &out, items: items}
		if b.usable(i) {
			for _, p := range b.parts(i) {
				has[p] = true
			}
		}
	}
	for _, p := range release.Parts() {
		if has[p] {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// groupPart is the part that a group of this name gives to its hosts.
func groupPart(group string) (release.Part, bool) {
	p := release.Part(strings.TrimPrefix(group, "kibo_"))
	return p, strings.HasPrefix(group, "kibo_") && p.Valid()
}

func partGroups() []string {
	var out []string
	for _, p := range release.Parts() {
		out = append(out, "kibo_"+string(p))
	}
	return out
}

// checkNames refuses unknown kibo_ names wherever they are written, used or not, and warns of unknown names among
// Ansible's connection variables.
func (inv *Inventory) checkNames(table []Variable) {
	known, names := map[string]Variable{}, []string{}
	for _, v := range table {
		for _, n := range v.spellings() {
			known[n] = v
			names = append(names, n)
		}
	}
	told := map[string]bool{"ansible_python_interpreter": true} // so common that saying it would be noise
	each := func(vars []setting) {
		for _, s := range vars {
			v, ok := known[s.name]
			switch {
			case !ok:
				inv.unknown(s, names)
			case v.Standing == NoEffect && !told[s.name]:
				told[s.name] = true
				inv.warn(s.at, s.name+" has no effect here: "+strings.TrimSuffix(v.Doc, "."), "")
			}
		}
	}
	for _, g := range inv.g.order {
		each(g.vars)
		for _, f := range inv.groupFiles[g.name] {
			each(f.vars)
		}
	}
	for _, h := range inv.g.hostOrder {
		each(h.vars)
		for _, f := range inv.hostFiles[h.name] {
			each(f.vars)
		}
	}
	each(inv.extra)
}

func (inv *Inventory) unknown(s setting, names []string) {
	switch {
	case strings.HasPrefix(s.name, "kibo_"):
		next := meant(s.name, names)
		n := deref(s.node)
		if plain(n) && (scalarKind(n) == "float" || scalarKind(n) == "int" || likeNum.MatchString(n.Value)) {
			next = strings.TrimSpace(next + " " + lossy(n))
		}
		inv.add(s.at, fmt.Sprintf("there is no variable %s", s.name), next)
	case s.name == "ansible_group_priority":
		inv.warn(s.at, "ansible_group_priority works only among a group's vars in an inventory file, not here", "")
	case strings.HasPrefix(s.name, "ansible_ssh_"), strings.HasPrefix(s.name, "ansible_become_"):
		inv.warn(s.at, fmt.Sprintf("%s is no variable that Ansible's ssh knows; it has no effect", s.name), meant(s.name, names))
	}
}

// sortedKeys lists a map's keys in order, so that nothing depends on chance.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
