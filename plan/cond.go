package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// CondKind is a kind of condition.
type CondKind string

// Kinds of conditions.
const (
	CondAll         CondKind = "all"
	CondAny         CondKind = "any"
	CondPackage     CondKind = "package"      // Package is installed on Host at Value
	CondStopped     CondKind = "stopped"      // nothing of Part's unit is left on Host
	CondRunning     CondKind = "running"      // Part's unit is up on Host and runs the installed program
	CondNodeState   CondKind = "node-state"   // Node is in one of the states of Value, separated by "|"
	CondNodeRelease CondKind = "node-release" // ctrl says that Node runs Value
	CondNodesReady  CondKind = "nodes-ready"  // every one of Nodes is READY, or drained, or taken by this run
	CondSettled     CondKind = "settled"      // Node has no running lifecycle command or Transfer
	CondWindow      CondKind = "window"       // the window Value is open on Host
	CondNoWindow    CondKind = "no-window"    // the window Value is not there on Host
	CondStaged      CondKind = "staged"       // the staging directory Value on Host is complete and ours
	CondUnstaged    CondKind = "unstaged"     // the staging directory Value is not there
	CondFree        CondKind = "free"         // nobody holds Host: no block inhibitor, no hold
	CondAgent       CondKind = "agent"        // kibo-agent is installed on Host at Value
	CondAdopted     CondKind = "adopted"      // ctrl counts as many Instances on Node as VMMs were noted on Host
	CondStepDone    CondKind = "step-done"    // this run did the step Value
	CondNotOurs     CondKind = "not-ours"     // Node is READY, or was drained by somebody else
	CondContinuity  CondKind = "continuity"   // every VMM noted on Host before its stop is the same process
)

// Cond is a condition on what the hosts say now. Pure data, judged by Judge.
type Cond struct {
	Kind    CondKind     `json:"kind"`
	Of      []Cond       `json:"of,omitempty"` // all, any
	Host    string       `json:"host,omitempty"`
	Part    release.Part `json:"part,omitempty"`
	Node    string       `json:"node,omitempty"`
	Nodes   []string     `json:"nodes,omitempty"`
	Value   string       `json:"value,omitempty"`
	Package string       `json:"package,omitempty"`
}

// Seen is what was observed: the only thing a condition may look at.
type Seen struct {
	Facts    map[string]checks.Facts            // by host
	Nodes    checks.Fact[[]checks.NodeRow]      // what ctrl says
	Settling checks.Fact[[]string]              // unfinished objects that ctrl's report lists
	Noted    map[string][]checks.VMM            // by host: VMMs as noted before the stop
	Begun    map[string]bool                    // nodes whose replacement this run began and did not end
	StepDone func(step string) bool             // steps that this run did
	Taken    func(record, of string) bool       // what this run took and did not give back
	Staged   map[string]map[string]string       // by host: file → sha256 that the staging directory must hold
	Programs map[string]map[release.Part]string // by host: SemVer that each unpacked program must name
}

// Answer is three-valued: what is unknown is neither yes nor no.
type Answer int

// Answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// Verdict is an answer with its evidence in words.
type Verdict struct {
	Answer Answer
	Why    string
	Final  bool // a no that will not turn into a yes by waiting
}

func yes(format string, a ...any) Verdict {
	return Verdict{Answer: Yes, Why: fmt.Sprintf(format, a...)}
}
func no(format string, a ...any) Verdict { return Verdict{Answer: No, Why: fmt.Sprintf(format, a...)} }
func unknown(format string, a ...any) Verdict {
	return Verdict{Answer: Unknown, Why: fmt.Sprintf(format, a...)}
}

// Hosts lists the hosts whose facts the condition needs, each once, in order of first mention.
func (c Cond) Hosts() []string {
	var out []string
	for _, d := range c.Of {
		for _, h := range d.Hosts() {
			if !slices.Contains(out, h) {
				out = append(out, h)
			}
		}
	}
	if c.Host != "" && !slices.Contains(out, c.Host) {
		out = append(out, c.Host)
	}
	return out
}

// Needs reports whether the condition, or one inside it, is of the kind.
func (c Cond) Needs(kinds ...CondKind) bool {
	if slices.Contains(kinds, c.Kind) {
		return true
	}
	return slices.ContainsFunc(c.Of, func(d Cond) bool { return d.Needs(kinds...) })
}

// NeedsNodes reports whether the condition needs what ctrl says of the nodes.
func (c Cond) NeedsNodes() bool {
	return c.Needs(CondNodeState, CondNodeRelease, CondNodesReady, CondSettled, CondAdopted, CondNotOurs)
}

// Judge says whether the condition holds by what was seen.
func (c Cond) Judge(s Seen) Verdict {
	switch c.Kind {
	case CondAll:
		return judgeAll(c.Of, s)
	case CondAny:
		return judgeAny(c.Of, s)
	case CondStepDone:
		if s.StepDone != nil && s.StepDone(c.Value) {
			return yes("this run did it")
		}
		return no("this run did not do it")
	case CondNodeState, CondNodeRelease, CondNodesReady, CondSettled, CondAdopted, CondNotOurs:
		return c.judgeNodes(s)
	}
	f, ok := s.Facts[c.Host]
	if !ok {
		return unknown("%s was not looked at", c.Host)
	}
	switch c.Kind {
	case CondPackage:
		return c.judgePackage(f)
	case CondStopped, CondRunning:
		return c.judgeUnit(f)
	case CondWindow, CondNoWindow:
		return c.judgeWindow(f)
	case CondStaged, CondUnstaged:
		return c.judgeStaged(f, s)
	case CondAgent:
		return c.judgeAgent(f)
	case CondFree:
		return c.judgeFree(f)
	case CondContinuity:
		return c.judgeContinuity(f, s)
	}
	return unknown("no such condition: %s", c.Kind)
}

func judgeAll(of []Cond, s Seen) Verdict {
	var why []string
	worst := Yes
	for _, d := range of {
		v := d.Judge(s)
		switch {
		case v.Answer == No:
			return v
		case v.Answer == Unknown && worst == Yes:
			worst, why = Unknown, []string{v.Why}
		case v.Answer == Yes && worst == Yes:
			why = append(why, v.Why)
		}
	}
	return Verdict{Answer: worst, Why: strings.Join(why, "; ")}
}

func judgeAny(of []Cond, s Seen) Verdict {
	out := no("nothing of it holds")
	for i, d := range of {
		v := d.Judge(s)
		if v.Answer == Yes {
			return v
		}
		if i == 0 || v.Answer == Unknown {
			out = v
		}
	}
	return out
}

func (c Cond) judgePackage(f checks.Facts) Verdict {
	pkgs, err := f.Packages.Get()
	if err != nil {
		return unknown("packages of %s are not known: %v", c.Host, err)
	}
	for _, p := range pkgs {
		if p.Name != c.Package {
			continue
		}
		if p.State != "installed" {
			return no("%s is %s", p.Name, p.State)
		}
		if p.Version != c.Value {
			return no("%s is %s, not %s", p.Name, p.Version, c.Value)
		}
		return yes("%s is %s", p.Name, p.Version)
	}
	return no("%s is not installed", c.Package)
}

func (c Cond) judgeUnit(f checks.Facts) Verdict {
	u, err := unitOf(f, c.Part)
	if err != nil {
		return unknown("%s on %s is not known: %v", c.Part.Unit(), c.Host, err)
	}
	state := u.Active + "/" + u.Sub
	if c.Kind == CondStopped {
		if u.Stopped() && (c.Value == "" || u.Active == c.Value) {
			return yes("%s is %s, no process left", u.Name, state)
		}
		return no("%s is %s, main PID %d, %d processes", u.Name, state, u.MainPID, u.Processes)
	}
	switch {
	case !u.Running():
		return no("%s is %s (result %s)", u.Name, state, u.Result)
	case u.Stale:
		return no("%s runs a program that was replaced since it started", u.Name)
	}
	return yes("%s is %s, main PID %d", u.Name, state, u.MainPID)
}

func unitOf(f checks.Facts, p release.Part) (checks.Unit, error) {
	for _, pf := range f.Parts {
		if pf.Part == p {
			return pf.Unit.Get()
		}
	}
	return checks.Unit{}, checks.ErrNotGathered
}
