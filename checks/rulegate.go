package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

func gateRules() []rule {
	return []rule{
		{
			id: "agent", title: "the gate is in force", of: "Z1 Z8", scope: perHost, root: true, needs: "Agent",
			verdict: "warn if kibo-agent is not installed (the walk installs it) or a layer of it is not active; unknown if it does not answer",
			remedy:  "kibo-rollout agent install -l HOST",
			host:    judgeAgent,
		},
		{
			id: "inhibitor", title: "nobody holds the host", of: "Z7", scope: perHost, root: true, needs: "Agent",
			verdict: "block while a process holds a block lock on shutdown",
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
			out = append(out, warn(fmt.Sprintf("the gate's %s layer is not active: %s", l.Name, orNothing(l.Reason)))...)
		}
	}
	if len(s.Layers) == 0 {
		out = append(out, warn("the gate names no layer that enforces it")...)
	}
	if len(out) == 0 {
		return pass("kibo-agent " + s.Version + " is in force")
	}
	return out
}

func judgeInhibitors(_ Input, h HostInput) []verdict {
	s, err := h.Facts.Agent.Get()
	if err != nil {
		return nil // without an agent nobody can tell, and the rule on the agent has said so
	}
	var out []verdict
	for _, i := range s.Inhibitors {
		// "block-weak" is what "block" was before systemd 257.
		if (i.Mode == "block" || i.Mode == "block-weak") && slices.Contains(strings.Split(i.What, ":"), "shutdown") {
			out = append(out, block(fmt.Sprintf("%s (process %d, user %d) holds the host: %s", orNothing(i.Who), i.PID, i.UID, orNothing(i.Why)))...)
		}
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
