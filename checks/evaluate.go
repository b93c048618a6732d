package checks

import (
	"errors"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Input is everything that findings are made of.
type Input struct {
	Target release.Target
	Hosts  []HostInput // inventory order
	Nodes  Fact[[]NodeRow]
	Run    string // the run that is being resumed: its traces are expected. "": none
}

// HostInput is a host of the inventory and what is known of it.
type HostInput struct {
	Name     string
	Parts    []release.Part // in part order
	NodeName string         // its name at ctrl
	StageDir string         // the target's own staging directory; "": nothing is going to be staged
	Gate     string         // managed, external or off
	Facts    Facts
	Err      error // the host's facts could not be read at all
}

// scope says what a rule is judged on.
type scope string

const (
	perHost  scope = "host"
	perParts scope = "part"
	perFleet scope = "fleet"
)

// rule is one check: a row of the table.
type rule struct {
	id      string
	title   string
	of      string // the contract's rules
	needs   string // facts
	verdict string // in words, for the documentation
	remedy  string // what to do if it does not pass, where the verdict does not know better; HOST is replaced
	scope   scope
	root    bool // needs facts that only root can read
	host    func(in Input, h HostInput) []verdict
	part    func(in Input, h HostInput, p PartFacts) []verdict
	fleet   func(in Input) []verdict
}

// verdict is a rule's word on one thing.
type verdict struct {
	level  Level
	host   string // fleet rules only
	text   string
	remedy string
}

func rules() []rule {
	var all []rule
	for _, group := range [][]rule{hostRules(), gateRules(), stageRules(), partRules(), versionRules(), fleetRules()} {
		all = append(all, group...)
	}
	return all
}

// Evaluate judges facts. Pure: the same input makes the same findings in the same order, hosts in inventory order, then the
// fleet. A host that could not be reached makes one finding and no others; where root is refused, rules that need root are not
// judged, since that finding blocks already.
func Evaluate(in Input) []Finding {
	var out []Finding
	for _, h := range in.Hosts {
		if h.Err != nil {
			out = append(out, Finding{
				Check: "reach", Host: h.Name, Level: UnknownFact,
				Text: "the host could not be asked: " + printable(h.Err.Error()), Remedy: "kibo-rollout status -l " + h.Name,
			})
			continue
		}
		for _, r := range rules() {
			out = append(out, r.judge(in, h)...)
		}
	}
	for _, r := range rules() {
		if r.scope == perFleet {
			out = append(out, r.findings("", "", r.fleet(in))...)
		}
	}
	return out
}

// judge applies a rule to a host and its parts.
func (r rule) judge(in Input, h HostInput) []Finding {
	if _, err := h.Facts.Sudo.Get(); r.root && err != nil {
		return nil
	}
	switch r.scope {
	case perHost:
		return r.findings(h.Name, "", r.host(in, h))
	case perParts:
		var out []Finding
		for _, p := range h.Parts {
			out = append(out, r.findings(h.Name, p, r.part(in, h, h.Facts.of(p)))...)
		}
		return out
	}
	return nil
}

func (r rule) findings(host string, p release.Part, verdicts []verdict) []Finding {
	out := make([]Finding, 0, len(verdicts))
	for _, v := range verdicts {
		f := Finding{Check: r.id, Host: host, Part: string(p), Level: v.level, Text: v.text, Remedy: v.remedy}
		if f.Host == "" {
			f.Host = v.host
		}
		if f.Remedy == "" && v.level != Pass {
			f.Remedy = r.remedy
		}
		f.Remedy = forHost(f.Remedy, f.Host, p)
		out = append(out, f)
	}
	return out
}

// of returns what is known of a part; nothing, if it was not asked after.
func (f Facts) of(p release.Part) PartFacts {
	for _, q := range f.Parts {
		if q.Part == p {
			return q
		}
	}
	return PartFacts{Part: p}
}

// pkg finds a package of a host. False if it is absent.
func (f Facts) pkg(name string) (Package, bool, error) {
	list, err := f.Packages.Get()
	for _, p := range list {
		if p.Name == name {
			return p, true, err
		}
	}
	return Package{}, false, err
}

// CheckRow is one check, for the documentation.
type CheckRow struct {
	ID, Title, Rule, Scope, Needs, Verdict, Remedy string
}

// Table lists every check that Evaluate makes, in its order, and those that reports make.
func Table() []CheckRow {
	out := []CheckRow{{
		ID: "reach", Title: "the host can be asked", Scope: string(perHost), Needs: "a connection",
		Verdict: "unknown if it cannot be reached; nothing else is judged then", Remedy: "kibo-rollout status -l HOST",
	}}
	for _, r := range rules() {
		out = append(out, CheckRow{r.id, r.title, r.of, string(r.scope), r.needs, r.verdict, r.remedy})
	}
	return append(out,
		CheckRow{"ctrl-first", "ctrl is on the target, or selected too", "K34 K56", string(perFleet), "ctrl's Packages, the target",
			"block if nodes or gateways are selected without ctrl while it is older; unknown if nobody can tell", "select ctrl's host too"},
		CheckRow{"preview", "the target program's preview finds no blocker", "K20 K22 K27 K28 K29", string(perParts), "the report",
			"block for each blocker, except ctrl's unfinished objects, and for whatever is not understood", "as the finding says"},
		CheckRow{"offline-check", "the target program's check after the stop passes", "K23 K26 K29", string(perParts), "the report",
			"block unless the exit status is 0", "as the finding says"},
	)
}

// pass, warn, block and unknown make verdicts.
func pass(text string) []verdict  { return []verdict{{level: Pass, text: text}} }
func warn(text string) []verdict  { return []verdict{{level: Warn, text: text}} }
func block(text string) []verdict { return []verdict{{level: Block, text: text}} }

func unknown(what string, err error) []verdict {
	if err == nil {
		err = errors.New("no reason given")
	}
	return []verdict{{level: UnknownFact, text: what + " is not known: " + printable(err.Error())}}
}
