package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// notes are what an operator must know before saying yes: what cannot be undone, what stays as somebody else left it.
func notes(in Input) []string {
	var out []string
	if in.Migrate {
		out = append(out, "ctrl's database is migrated: after that the old ctrl refuses it, and there is only the way forward (K33)")
	}
	if hosts := runtimeChanges(in); len(hosts) > 0 {
		out = append(out, fmt.Sprintf(
			"the VM runtime changes on %s: nodes cannot go back to a version before it, and the Platform is published only after all nodes are replaced (K32)",
			strings.Join(hosts, ", ")))
	}
	if names := drained(in); len(names) > 0 {
		out = append(out, "drained by somebody else, and left drained afterwards: "+strings.Join(names, ", ")+" (K35)")
	}
	if done := doneHosts(in); len(done) > 0 {
		out = append(out, "on "+in.Target.Version+" already: "+strings.Join(done, ", "))
	}
	return append(out, gateNotes(in)...)
}

// runtimeChanges lists node hosts whose VM runtime is not the target's, by the checksums that dpkg keeps.
func runtimeChanges(in Input) []string {
	var out []string
	for _, h := range in.Hosts {
		arch, err := h.Facts.Arch.Get()
		if err != nil {
			continue
		}
		d, ok := in.Target.Deb(release.Node, arch)
		for _, pf := range h.Facts.Parts {
			if !ok || pf.Part != release.Node || in.Done[h.Host.Name] {
				continue
			}
			if now, err := pf.Runtime.Get(); err == nil && now != d.Runtime {
				out = append(out, h.Host.Name)
			}
		}
	}
	return out
}

func drained(in Input) []string {
	rows, err := in.Nodes.Get()
	if err != nil {
		return nil
	}
	ours := nodeNames(in.Hosts)
	var out []string
	for _, r := range rows {
		if slices.Contains(ours, r.Name) && (r.State == "DRAINING" || r.State == "DRAINED") {
			out = append(out, r.Name)
		}
	}
	return out
}

func doneHosts(in Input) []string {
	var out []string
	for _, h := range in.Hosts {
		if in.Done[h.Host.Name] {
			out = append(out, h.Host.Name)
		}
	}
	return out
}

func gateNotes(in Input) []string {
	var off, external []string
	reason := ""
	for _, h := range in.Hosts {
		switch h.Host.Kibo.Gate {
		case "off":
			off = append(off, h.Host.Name)
			reason = h.Host.Kibo.OffReason
		case "external":
			external = append(external, h.Host.Name)
		}
	}
	var out []string
	if len(off) > 0 {
		out = append(out, fmt.Sprintf("THE GATE IS OFF on %s (%s): nothing on the host guards the change", strings.Join(off, ", "), reason))
	}
	if len(external) > 0 {
		out = append(out, "somebody else opens the windows on "+strings.Join(external, ", ")+": where none is open, the walk stops")
	}
	return out
}
