package inventory

import (
	"cmp"
	"slices"

	"gopkg.in/yaml.v3"
)

// setting is one variable as it was written once.
type setting struct {
	name string
	node *yaml.Node
	at   place
}

// group and host are the vertices of the inventory while it is read; all edges are kept in the order of writing.
type group struct {
	name     string
	at       place
	children []*group
	parents  []*group
	hosts    []*host
	vars     []setting
	priority int
	depth    int
}

type host struct {
	name   string
	at     place
	port   int // written behind the name
	groups []*group
	vars   []setting
}

// graph is everything that the sources said, before precedence.
type graph struct {
	groups    map[string]*group
	order     []*group // of first appearance
	hosts     map[string]*host
	hostOrder []*host // of first appearance
}

func newGraph() *graph {
	g := &graph{groups: map[string]*group{}, hosts: map[string]*host{}}
	all, ungrouped := g.group("all", place{}), g.group("ungrouped", place{})
	link(all, ungrouped)
	return g
}

// group returns the group of that name, made if it is new.
func (g *graph) group(name string, p place) *group {
	if old := g.groups[name]; old != nil {
		return old
	}
	n := &group{name: name, at: p, priority: 1}
	g.groups[name] = n
	g.order = append(g.order, n)
	return n
}

// host returns the host of that name, made if it is new. fresh tells which.
func (g *graph) host(name string, p place) (h *host, fresh bool) {
	if old := g.hosts[name]; old != nil {
		return old, false
	}
	h = &host{name: name, at: p}
	g.hosts[name] = h
	g.hostOrder = append(g.hostOrder, h)
	return h, true
}

func (gr *group) addHost(h *host) {
	if !slices.Contains(h.groups, gr) {
		h.groups = append(h.groups, gr)
		gr.hosts = append(gr.hosts, h)
	}
}

func link(parent, child *group) {
	if !slices.Contains(parent.children, child) {
		parent.children = append(parent.children, child)
		child.parents = append(child.parents, parent)
	}
}

// reaches reports whether to is from or below it.
func reaches(from, to *group) bool {
	for _, g := range descend(from) {
		if g == to {
			return true
		}
	}
	return false
}

// descend lists a group and everything below it, level by level, each once. This is the order in which Ansible takes hosts.
func descend(from *group) []*group {
	out, seen := []*group{from}, map[*group]bool{from: true}
	for i := 0; i < len(out); i++ {
		for _, c := range out[i].children {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// ancestors lists every group that a host is in, directly or through children, without "all".
func (h *host) ancestors() []*group {
	out := slices.Clone(h.groups)
	seen := map[*group]bool{}
	for _, g := range out {
		seen[g] = true
	}
	for i := 0; i < len(out); i++ {
		for _, p := range out[i].parents {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return slices.DeleteFunc(out, func(g *group) bool { return g.name == "all" })
}

// reconcile gives every group a way up to "all", puts lonely hosts into "ungrouped", and counts depths.
func (g *graph) reconcile() {
	all, ungrouped := g.groups["all"], g.groups["ungrouped"]
	for _, gr := range g.order {
		if gr != all && len(gr.parents) == 0 {
			link(all, gr)
		}
	}
	for _, h := range g.hostOrder {
		lonely := true
		for _, gr := range h.groups {
			lonely = lonely && (gr == all || gr == ungrouped)
		}
		switch {
		case lonely:
			ungrouped.addHost(h)
		case slices.Contains(h.groups, ungrouped):
			h.groups = slices.DeleteFunc(h.groups, func(x *group) bool { return x == ungrouped })
			ungrouped.hosts = slices.DeleteFunc(ungrouped.hosts, func(x *host) bool { return x == h })
		}
	}
	g.depths()
}

// depths sets each group's depth: the longest way down from "all".
func (g *graph) depths() {
	waiting := map[*group]int{}
	for _, gr := range g.order {
		waiting[gr] = len(gr.parents)
	}
	ready := []*group{g.groups["all"]}
	for len(ready) > 0 {
		gr := ready[0]
		ready = ready[1:]
		for _, c := range gr.children {
			c.depth = max(c.depth, gr.depth+1)
			if waiting[c]--; waiting[c] == 0 {
				ready = append(ready, c)
			}
		}
	}
}

// byPrecedence sorts groups from weakest to strongest: depth first, then ansible_group_priority, then name.
func byPrecedence(groups []*group) []*group {
	out := slices.Clone(groups)
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
	})
	return out
}

// hostsOf lists the hosts of a group and of all groups below it, in inventory order.
func hostsOf(gr *group) []*host {
	var out []*host
	seen := map[*host]bool{}
	for _, d := range descend(gr) {
		for _, h := range d.hosts {
			if !seen[h] {
				seen[h] = true
				out = append(out, h)
			}
		}
	}
	return out
}
