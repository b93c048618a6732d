package plan

// For keeps only what is done on some hosts: the blocks of the others are left out, and their nodes are not waited for. It reports
// whether anything was left out.
func (p Plan) For(hosts map[string]bool) (Plan, bool) {
	out, less := p, false
	nodes := map[string]bool{}
	for _, h := range p.Hosts {
		if h.NodeName != "" && !hosts[h.Name] {
			nodes[h.NodeName] = true
		}
	}
	out.Blocks, less = blocksFor(p.Blocks, hosts, nodes)
	out.Clean, _ = blocksFor(p.Clean, hosts, nodes)
	return out, less
}

func blocksFor(blocks []Block, hosts, without map[string]bool) ([]Block, bool) {
	var out []Block
	for _, b := range blocks {
		if !hosts[b.Host] {
			continue
		}
		var steps []Step
		for _, st := range b.Steps {
			st.Skip, st.Done = st.Skip.without(without), st.Done.without(without)
			steps = append(steps, st)
		}
		b.Steps = steps
		out = append(out, b)
	}
	return out, len(out) < len(blocks)
}

// without leaves nodes out of what is waited for.
func (c *Cond) without(nodes map[string]bool) *Cond {
	if c == nil || c.Kind != CondNodesReady {
		return c
	}
	d := *c
	d.Nodes = nil
	for _, n := range c.Nodes {
		if !nodes[n] {
			d.Nodes = append(d.Nodes, n)
		}
	}
	return &d
}

// Unprepared leaves out the preparation of hosts that have nothing left to do.
func (p Plan) Unprepared(done map[string]bool) Plan {
	out := p
	out.Blocks = nil
	for _, b := range p.Blocks {
		if !done[b.Host] || b.ID != b.Host+"/"+prepareBlock {
			out.Blocks = append(out.Blocks, b)
		}
	}
	return out
}
