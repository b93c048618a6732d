package cli

import (
	"slices"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/plan"
)

// evaluate judges what is known by now. A left-over staging directory that is going to be removed is no finding.
func (p *prepared) evaluate() []checks.Finding {
	in := checks.Input{Target: p.input.Target, Nodes: p.answer.nodes}
	if p.unfinished != nil {
		in.Run = p.unfinished.Plan.ID
	}
	for _, h := range p.answer.hosts {
		hi := checks.HostInput{
			Name: h.host.Name, Parts: h.host.Parts, NodeName: h.host.Kibo.NodeName, Gate: h.host.Kibo.Gate, Facts: h.facts, Err: h.err,
			StageDir: plan.StageDir(h.host, p.input.Target),
		}
		in.Hosts = append(in.Hosts, hi)
	}
	found := checks.Evaluate(in)
	if ctrl, left := p.ctrlLeftOut(); left {
		found = append(found, checks.CtrlFirst(p.input.Target, ctrl, in.Hosts)...)
	}
	if p.input.CleanOld {
		found = slices.DeleteFunc(found, func(f checks.Finding) bool { return f.Check == "staging" })
	}
	return found
}

// ctrlLeftOut gives the facts of ctrl's host where it is not among the selected ones.
func (p *prepared) ctrlLeftOut() (checks.Facts, bool) {
	for _, h := range p.answer.more {
		if h.host.Has(release.Ctrl) {
			return h.facts, true
		}
	}
	return checks.Facts{}, false
}
