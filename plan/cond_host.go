package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
)

func (c Cond) judgeWindow(f checks.Facts) Verdict {
	st, err := f.Agent.Get()
	if err != nil {
		if c.Kind == CondNoWindow && errors.Is(err, checks.ErrNoAgent) {
			return yes("no agent, no window on %s", c.Host)
		}
		return unknown("the gate of %s is not known: %v", c.Host, err)
	}
	here := st.Window != nil && st.Window.ID == c.Value
	if c.Kind == CondNoWindow {
		if here {
			return no("window %s is still there on %s", c.Value, c.Host)
		}
		return yes("window %s is not on %s", c.Value, c.Host)
	}
	switch {
	case here && st.Open:
		return yes("window %s is open", c.Value)
	case here:
		return no("window %s is not open: %s", c.Value, st.Reason)
	}
	return no("window %s is not on %s", c.Value, c.Host)
}

// judgeFree is about holds and inhibitors (Z7). Where there is no agent, nobody on the host can tell: the gate was switched off.
func (c Cond) judgeFree(f checks.Facts) Verdict {
	st, err := f.Agent.Get()
	switch {
	case errors.Is(err, checks.ErrNoAgent):
		return yes("no agent on %s to be asked", c.Host)
	case err != nil:
		return unknown("whether %s is held is not known: %v", c.Host, err)
	}
	if who := st.Held(); len(who) > 0 {
		return no("%s", strings.Join(who, "; "))
	}
	return yes("nobody holds %s", c.Host)
}

func (c Cond) judgeAgent(f checks.Facts) Verdict {
	st, err := f.Agent.Get()
	switch {
	case errors.Is(err, checks.ErrNoAgent):
		return no("kibo-agent is not installed on %s", c.Host)
	case err != nil:
		return unknown("kibo-agent on %s is not known: %v", c.Host, err)
	case c.Value != "" && st.Version != c.Value:
		return no("kibo-agent on %s is %s, not %s", c.Host, st.Version, c.Value)
	}
	return yes("kibo-agent %s is installed", st.Version)
}

func (c Cond) judgeStaged(f checks.Facts, s Seen) Verdict {
	st, err := f.Staged.Get()
	if err != nil {
		return unknown("the staging directory of %s is not known: %v", c.Host, err)
	}
	if c.Kind == CondUnstaged {
		if st.Exists {
			return no("%s is still there", c.Value)
		}
		return yes("%s is not there", c.Value)
	}
	switch {
	case !st.Exists:
		return no("%s is not there", c.Value)
	case !st.Marker:
		return no("%s is there but not complete", c.Value)
	}
	for file, sum := range s.Staged[c.Host] {
		if st.Debs[file] != sum {
			return no("%s/%s is not the file to install", c.Value, file)
		}
	}
	for part, version := range s.Programs[c.Host] {
		if st.Version[part] != version {
			return no("the unpacked %s says version %q, not %s", part, st.Version[part], version)
		}
	}
	return yes("%s is complete, checksums agree", c.Value)
}

// judgeContinuity proves K41: each VMM noted before the stop is the same unit, process and start time.
func (c Cond) judgeContinuity(f checks.Facts, s Seen) Verdict {
	noted, ok := s.Noted[c.Host]
	if !ok {
		return yes("no VMM was noted on %s", c.Host)
	}
	now, err := f.VMMs.Get()
	if err != nil {
		return unknown("the VMMs of %s are not known: %v", c.Host, err)
	}
	var lost []string
	for _, v := range noted {
		if !slices.Contains(now, v) {
			lost = append(lost, v.Unit)
		}
	}
	if len(lost) > 0 {
		v := no("%d of %d VMMs on %s are not the same process: %s", len(lost), len(noted), c.Host, strings.Join(lost, ", "))
		v.Final = true
		return v
	}
	return yes("all %d VMMs are the same process", len(noted))
}

func (c Cond) judgeNodes(s Seen) Verdict {
	rows, err := s.Nodes.Get()
	if err != nil {
		return unknown("ctrl's node list is not known: %v", err)
	}
	if c.Kind == CondNodesReady {
		return c.judgeNodesReady(rows, s)
	}
	i := slices.IndexFunc(rows, func(r checks.NodeRow) bool { return r.Name == c.Node })
	if i < 0 {
		return no("ctrl does not list node %s", c.Node)
	}
	r := rows[i]
	switch c.Kind {
	case CondNodeState:
		if slices.Contains(strings.Split(c.Value, "|"), r.State) {
			return yes("node %s is %s", c.Node, r.State)
		}
		return no("node %s is %s", c.Node, r.State)
	case CondNodeRelease:
		if r.Release == c.Value {
			return yes("ctrl says node %s runs %s", c.Node, r.Release)
		}
		return no("ctrl says node %s runs %s", c.Node, r.Release)
	case CondNotOurs:
		ours := s.Taken != nil && s.Taken(RecordDrain, c.Node)
		if r.State == "READY" || !ours && (r.State == "DRAINING" || r.State == "DRAINED") {
			return yes("node %s is %s", c.Node, r.State)
		}
		return no("node %s is %s", c.Node, r.State)
	case CondAdopted:
		return c.judgeAdopted(r, s)
	default:
		return c.judgeSettled(r, s)
	}
}

// judgeAdopted compares ctrl's count of Instances with the VMMs noted before the stop. Where ctrl tells no count, the VMMs'
// continuity and the node's state are all there is.
func (c Cond) judgeAdopted(r checks.NodeRow, s Seen) Verdict {
	noted := len(s.Noted[c.Host])
	switch {
	case r.Instances < 0:
		return yes("ctrl tells no count of Instances")
	case r.Instances < noted:
		return no("ctrl counts %d Instances on %s, %d VMMs were noted before the stop", r.Instances, c.Node, noted)
	}
	return yes("%d Instances re-adopted", r.Instances)
}

// judgeSettled goes by ctrl's counts for the node. Where its list has none, ctrl's own report of unfinished objects is asked: one
// that names no node counts for every node.
func (c Cond) judgeSettled(r checks.NodeRow, s Seen) Verdict {
	if r.Commands >= 0 && r.Transfers >= 0 {
		if r.Commands+r.Transfers > 0 {
			return no("node %s has %d running commands and %d Transfers", c.Node, r.Commands, r.Transfers)
		}
		return yes("no running command or Transfer on node %s", c.Node)
	}
	open, err := s.Settling.Get()
	if err != nil {
		return unknown("running commands and Transfers are not known: %v", err)
	}
	for _, line := range open {
		if !strings.Contains(line, "node=") || slices.Contains(strings.FieldsFunc(line, notName), "node="+c.Node) {
			return no("unfinished: %s", line)
		}
	}
	return yes("no running command or Transfer on node %s", c.Node)
}

func notName(r rune) bool { return strings.ContainsRune(" ,;()\t", r) }

func (c Cond) judgeNodesReady(rows []checks.NodeRow, s Seen) Verdict {
	for _, name := range c.Nodes {
		i := slices.IndexFunc(rows, func(r checks.NodeRow) bool { return r.Name == name })
		switch {
		case s.Begun[name], s.Taken != nil && s.Taken(RecordDrain, name):
			continue // being replaced by this run: its own block waits for it
		case i < 0:
			return no("ctrl does not list node %s", name)
		case rows[i].State != "READY" && rows[i].State != "DRAINING" && rows[i].State != "DRAINED":
			return no("node %s is %s", name, rows[i].State)
		}
	}
	return yes("all %d nodes are back", len(c.Nodes))
}
