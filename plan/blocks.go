package plan

import (
	"github.com/kibotos/kibo-rollout/internal/release"
)

// wave numbers the waves as blocks are laid out.
type wave struct{ n int }

func (w *wave) next() int { w.n++; return w.n - 1 }

// prepareBlock is the last part of the id of the blocks that make a host ready.
const prepareBlock = "prepare"

// perHost lays one block a host, all in one wave.
func perHost(sites []site, kind, title string, w *wave, rows []row) []Block {
	n := w.next()
	var out []Block
	for i, s := range sites {
		if i > 0 && sites[i-1].host.Name == s.host.Name {
			out[len(out)-1].Steps = append(out[len(out)-1].Steps, againFor(s, rows)...)
			continue
		}
		out = append(out, Block{
			ID: s.host.Name + "/" + kind, Title: title + " " + s.host.Name, Host: s.host.Name, Wave: n, Steps: steps(rows, s),
			Stuck: "nothing was stopped on " + s.host.Name,
		})
	}
	return out
}

// againFor are the rows that a host has once for each part, for its second and later parts.
func againFor(s site, rows []row) []Step {
	var parts []row
	for _, r := range rows {
		if r.kind == "preview" {
			parts = append(parts, r)
		}
	}
	return steps(parts, s)
}

func ctrlBlocks(sites []site, nodes []string, w *wave) []Block {
	var out []Block
	for _, s := range sites {
		if s.part != release.Ctrl {
			continue
		}
		out = append(out, Block{
			ID: s.block(), Title: "upgrade ctrl on " + s.host.Name, Host: s.host.Name, Wave: w.next(), Goal: s.replaced(),
			Steps: steps(ctrlRows(), s), Finally: steps(closeRows(), s),
			Stuck: "no node was touched",
		})
	}
	if len(out) == 0 || len(nodes) == 0 {
		return out
	}
	return append(out, readyBlock(out[0].Host, sites, nodes, w))
}

func readyBlock(host string, sites []site, nodes []string, w *wave) Block {
	var ctrl site
	for _, s := range sites {
		if s.part == release.Ctrl && s.host.Name == host {
			ctrl = s
		}
	}
	st := steps(readyRows(), ctrl)
	st[0].ID = host + "/nodes-ready"
	st[0].Skip = &Cond{Kind: CondNodesReady, Nodes: nodes}
	st[0].Done = st[0].Skip
	st[0].OnFail = "ctrl is on the target; no node was touched (a fleet may stay mixed on one line, K4)"
	return Block{ID: host + "/ready", Title: "wait for the nodes", Host: host, Wave: w.next(), Steps: st, Stuck: st[0].OnFail}
}

// nodeBlocks lays the nodes out, serial of them in a wave. A node on the host where the kibo command runs has a wave of its own: that
// host has one allow-file, and the others' drains need it.
func nodeBlocks(sites []site, serial int, w *wave) []Block {
	var out []Block
	serial = max(serial, 1)
	n, in := 0, serial
	for _, s := range sites {
		if s.part != release.Node {
			continue
		}
		if alone := s.host.Name == s.cliHost; in >= serial || alone {
			n, in = w.next(), 0
			if alone {
				in = serial
			}
		}
		in++
		out = append(out, nodeBlock(s, n))
	}
	return out
}

func nodeBlock(s site, wave int) Block {
	goal := all(*s.replaced(), Cond{Kind: CondNotOurs, Node: s.node()})
	if s.idle {
		goal = s.replaced()
	}
	return Block{
		ID: s.block(), Title: "upgrade node " + s.node(), Host: s.host.Name, Node: s.node(), Wave: wave, Goal: goal,
		Steps: steps(nodeRows(), s), Finally: steps(closeRows(), s), Around: true,
		Stuck: "node " + s.node() + " stays drained and alone; no other node was touched (K31)",
	}
}

func gatewayBlocks(sites []site, w *wave) []Block {
	var out []Block
	for _, part := range []release.Part{release.E2B, release.GW} {
		for _, s := range sites {
			if s.part != part {
				continue
			}
			out = append(out, Block{
				ID: s.block(), Title: "upgrade gateway " + s.host.Name + " (" + string(part) + ")", Host: s.host.Name, Wave: w.next(),
				Goal: s.replaced(), Steps: steps(gatewayRows(), s), Finally: steps(closeRows(), s), Around: true,
				Stuck: "ctrl and the nodes are not affected",
			})
		}
	}
	return out
}
