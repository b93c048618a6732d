package view

import (
	"errors"
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// Machine is one host as status is told of it.
type Machine struct {
	Name     string
	Address  string
	NodeName string         // its name at ctrl
	Parts    []release.Part // as the inventory says
	Err      error          // why nothing is known of the host; then Facts is not looked at
	Facts    checks.Facts
}

// Status is the state of a fleet: the JSON document of `status`, and what the table is drawn from.
type Status struct {
	Schema     int           `json:"schema"`
	Kind       string        `json:"kind"` // "status"
	Hosts      []HostState   `json:"hosts"`
	Versions   []PartLine    `json:"versions"`
	Mixed      bool          `json:"mixed"`                // not every part that answered has the same version
	OneLine    bool          `json:"oneLine"`              // all versions are on one release line: mixed is legal then (K4)
	Nodes      []NodeState   `json:"nodes"`                // as ctrl lists them
	NodesError string        `json:"nodesError,omitempty"` // why ctrl's list is not known
	Runs       []Unfinished  `json:"unfinishedRuns,omitempty"`
	Failed     []Unreachable `json:"unreachable,omitempty"`
}

// HostState is one host that answered.
type HostState struct {
	Name       string       `json:"name"`
	Address    string       `json:"address,omitempty"`
	Clock      time.Time    `json:"clock,omitzero"`
	Parts      []PartState  `json:"parts"`
	Node       *NodeState   `json:"node,omitempty"`
	VMMs       []checks.VMM `json:"vmms,omitempty"`
	VMMsError  string       `json:"vmmsError,omitempty"`
	Gate       *gate.Status `json:"gate,omitempty"`
	GateError  string       `json:"gateError,omitempty"`
	NoAgent    bool         `json:"noAgent,omitempty"` // kibo-agent is not installed: nothing guards the host
	DpkgAudit  string       `json:"dpkgAudit,omitempty"`
	Problems   []string     `json:"problems,omitempty"` // other facts that could not be read
	hasVMMFact bool
}

// PartState is one part on a host.
type PartState struct {
	Part    release.Part `json:"part"`
	Version string       `json:"version,omitempty"`
	Unit    *checks.Unit `json:"unit,omitempty"`
	Problem string       `json:"problem,omitempty"` // why version or unit is not known
}

// NodeState is one line of ctrl's node list.
type NodeState struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Release   string `json:"release"`
	Instances int    `json:"instances"` // -1: ctrl does not say
	Host      string `json:"host,omitempty"`
}

// PartLine is where each version of a part is installed.
type PartLine struct {
	Part     release.Part   `json:"part"`
	Versions []VersionHosts `json:"versions"`
}

// VersionHosts is a version and the hosts that have it installed.
type VersionHosts struct {
	Version string   `json:"version"`
	Hosts   []string `json:"hosts"`
}

// Unfinished is a run that a host remembers as not ended.
type Unfinished struct {
	Host string `json:"host"`
	Run  string `json:"run"`
	Next string `json:"next,omitempty"` // how to go on with it, as a line to paste; by whoever knows the flags
}

// Unreachable is a host of which nothing is known.
type Unreachable struct {
	Host   string         `json:"host"`
	Parts  []release.Part `json:"parts,omitempty"`
	Reason string         `json:"reason"`
}

// NewStatus arranges what was gathered. Order is that of the machines; nothing is judged.
func NewStatus(machines []Machine, nodes checks.Fact[[]checks.NodeRow]) Status {
	s := Status{Schema: 1, Kind: "status", Hosts: []HostState{}, Versions: []PartLine{}, Nodes: []NodeState{}}
	rows, err := nodes.Get()
	if err != nil {
		s.NodesError = err.Error()
	}
	for _, r := range rows {
		s.Nodes = append(s.Nodes, NodeState{Name: r.Name, State: r.State, Release: r.Release, Instances: r.Instances})
	}
	for _, m := range machines {
		if m.Err != nil {
			s.Failed = append(s.Failed, Unreachable{m.Name, m.Parts, m.Err.Error()})
			continue
		}
		h := hostState(m)
		if slices.Contains(m.Parts, release.Node) {
			i := slices.IndexFunc(s.Nodes, func(n NodeState) bool { return n.Name == m.NodeName })
			if i >= 0 {
				s.Nodes[i].Host = m.Name
				h.Node = &s.Nodes[i]
			}
		}
		if id, err := m.Facts.Runs.Get(); err == nil && id != "" {
			s.Runs = append(s.Runs, Unfinished{Host: m.Name, Run: id})
		}
		s.Hosts = append(s.Hosts, h)
	}
	s.Versions = partLines(s.Hosts)
	s.Mixed, s.OneLine = mixture(s.Versions)
	return s
}

// mixture compares every version with the first one (K4).
func mixture(lines []PartLine) (mixed, oneLine bool) {
	oneLine = true
	for _, l := range lines {
		for _, v := range l.Versions {
			first := lines[0].Versions[0].Version
			if v.Version == first {
				continue
			}
			mixed = true
			oneLine = oneLine && release.SameLine(first, v.Version)
		}
	}
	return mixed, oneLine
}

func hostState(m Machine) HostState {
	f := m.Facts
	h := HostState{Name: m.Name, Address: m.Address, Parts: []PartState{}}
	h.Clock, _ = f.Clock.Get()
	for _, p := range f.Parts {
		h.Parts = append(h.Parts, partState(p))
	}
	vmms, err := f.VMMs.Get()
	h.VMMs, h.hasVMMFact = vmms, err == nil
	if err != nil && slices.Contains(m.Parts, release.Node) {
		h.VMMsError = err.Error()
	}
	switch st, err := f.Agent.Get(); {
	case err == nil:
		h.Gate = &st
	case errors.Is(err, checks.ErrNoAgent):
		h.NoAgent = true
	default:
		h.GateError = err.Error()
	}
	audit, err := f.DpkgAudit.Get()
	h.DpkgAudit = audit
	if err != nil && !errors.Is(err, checks.ErrNotGathered) {
		h.Problems = append(h.Problems, "dpkg --audit: "+err.Error())
	}
	if ok, err := f.Sudo.Get(); err == nil && !ok {
		h.Problems = append(h.Problems, "commands cannot run as root")
	} else if err != nil && !errors.Is(err, checks.ErrNotGathered) {
		h.Problems = append(h.Problems, "sudo: "+err.Error())
	}
	return h
}

func partState(p checks.PartFacts) PartState {
	out := PartState{Part: p.Part}
	version, err := p.Version.Get()
	out.Version = version
	if err != nil {
		out.Problem = err.Error()
	}
	unit, err := p.Unit.Get()
	switch {
	case err == nil:
		out.Unit = &unit
	case out.Problem == "":
		out.Problem = err.Error()
	}
	return out
}

// partLines lists the versions of each part in part order, each in the order of first mention.
func partLines(hosts []HostState) []PartLine {
	out := []PartLine{}
	for _, part := range release.Parts() {
		line := PartLine{Part: part}
		for _, h := range hosts {
			for _, p := range h.Parts {
				if p.Part != part || p.Version == "" {
					continue
				}
				i := slices.IndexFunc(line.Versions, func(v VersionHosts) bool { return v.Version == p.Version })
				if i < 0 {
					i = len(line.Versions)
					line.Versions = append(line.Versions, VersionHosts{Version: p.Version})
				}
				line.Versions[i].Hosts = append(line.Versions[i].Hosts, h.Name)
			}
		}
		if len(line.Versions) > 0 {
			out = append(out, line)
		}
	}
	return out
}
