package plan

import (
	"time"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// row is one line of a step table: what it is called, how far it reaches, which rules it obeys, when it applies,
// and the Step that it becomes for one site. The printed plan, the walk, resume and docs/steps.md are all read from it.
type row struct {
	kind     string // last part of the step's id
	title    string
	effect   command.Effect
	rule     string // ids of the contract's rules
	complete string // in words, for the docs; the Step's Done is the judge
	applies  func(site) bool
	fill     func(site, *Step) // everything that depends on the site
}

// steps turns a table into the steps of one site's block.
func steps(table []row, s site) []Step {
	var out []Step
	for _, r := range table {
		if r.applies != nil && !r.applies(s) {
			continue
		}
		out = append(out, r.step(s))
	}
	return out
}

func (r row) step(s site) Step {
	st := Step{
		ID: s.block() + "/" + r.kind, Title: r.title, Host: s.host.Name, Effect: r.effect, Rule: r.rule,
		Limit: s.limit(r.kind, time.Minute),
	}
	r.fill(s, &st)
	return named(st)
}

// named gives every job the id of its step: jobs of two steps never share a key.
func named(st Step) Step {
	for i, a := range st.Act {
		if a.Job != nil {
			job := *a.Job
			job.Step = st.ID
			st.Act[i].Job = &job
		}
	}
	for i := range st.Back {
		st.Back[i] = named(st.Back[i])
	}
	return st
}

// RowDoc is a row as the documentation shows it.
type RowDoc struct {
	Block, Kind, Title, Complete, Rule string
	Effect                             command.Effect
}

// Tables lists every row of a mode in the order in which it is walked.
func Tables(m Mode) []RowDoc {
	if m != Rolling {
		return nil
	}
	var out []RowDoc
	for _, t := range []struct {
		block string
		rows  []row
	}{
		{"each host", prepareRows()},
		{"each host, ctrl and node", previewRows()},
		{"ctrl", ctrlRows()},
		{"ctrl, always", closeRows()},
		{"fleet", readyRows()},
		{"each node", nodeRows()},
		{"each node, always", closeRows()},
		{"each gateway", gatewayRows()},
		{"each gateway, always", closeRows()},
		{"each host", verifyRows()},
		{"each host", cleanRows()},
	} {
		for _, r := range t.rows {
			out = append(out, RowDoc{t.block, r.kind, r.title, r.complete, r.rule, r.effect})
		}
	}
	return out
}
