package checks

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func gateRules() []rule {
	return []rule{
		{
			id: "agent", title: "the gate is in force", of: "Z1 Z8", scope: perHost, root: true, needs: "Agent",
			verdict: "warn if kibo-agent is not installed (the walk installs it); block if a layer of it is not active; unknown if it does not answer",
			remedy:  "kibo-rollout agent install -l HOST",
			host:    judgeAgent,
		},
		{
			id: "inhibitor", title: "nobody holds the host", of: "Z7", scope: perHost, root: true, needs: "Agent",
			verdict: "block while somebody holds a ctrl host (a block lock on shutdown); warn on other hosts, which are gone around",
			remedy:  "wait until it is released, or leave the host out with -l '!HOST'; ssh HOST systemd-inhibit --list",
			host:    judgeInhibitors,
		},
	}
}

func judgeAgent(_ Input, h HostInput) []verdict {
	s, err := h.Facts.Agent.Get()
	switch {
	case errors.Is(err, ErrNoAgent) && h.Gate == "off":
		return warn("kibo-agent is not installed and the gate is off: nothing holds changes back on this host")
	case errors.Is(err, ErrNoAgent):
		return warn("kibo-agent is not installed: the walk installs it first")
	case err != nil:
		return unknown("what the gate says", err)
	}
	var out []verdict
	for _, l := range s.Layers {
		if !l.Active {
			out = append(out, block(fmt.Sprintf("gate inactive: its %s layer does not hold changes back: %s", l.Name, orNothing(l.Reason)))...)
		}
	}
	if len(s.Layers) == 0 {
		out = append(out, block("gate inactive: it names no layer that enforces it")...)
	}
	if len(out) == 0 {
		return pass("kibo-agent " + s.Version + " is in force")
	}
	return out
}

// judgeInhibitors warns where the walk can go around the host and come back; ctrl comes first and cannot be gone around.
func judgeInhibitors(_ Input, h HostInput) []verdict {
	s, err := h.Facts.Agent.Get()
	if err != nil {
		return nil // without an agent nobody can tell, and the rule on the agent has said so
	}
	var out []verdict
	for _, who := range s.Held() {
		if slices.Contains(h.Parts, release.Ctrl) {
			out = append(out, block(printable(who))...)
			continue
		}
		out = append(out, warn(printable(who)+": the walk goes around it and comes back")...)
	}
	if len(out) == 0 {
		return pass("nobody holds the host")
	}
	return out
}

func orNothing(s string) string {
	if s == "" {
		return "no reason given"
	}
	return s
}
