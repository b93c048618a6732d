package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func stageRules() []rule {
	return []rule{
		{
			id: "staging", title: "the staging directory is free, or holds just this target", of: "K10 K11", scope: perHost, root: true, needs: "Staged",
			verdict: "block if the directory is there and was not completed, or holds other files; warn of other leftovers beside it",
			remedy:  "look at the directory above it: kibo-rollout check -l HOST -v",
			host:    judgeStaging,
		},
		{
			id: "staged-program", title: "the unpacked programs are the target", of: "K6 K12", scope: perHost, root: true, needs: "Staged",
			verdict: "block if an unpacked program names another version, or does not run",
			remedy:  "get the right .deb and stage it again: kibo-rollout check",
			host:    judgeStagedPrograms,
		},
	}
}

func judgeStaging(in Input, h HostInput) []verdict {
	if h.StageDir == "" {
		return nil
	}
	s, err := h.Facts.Staged.Get()
	if err != nil {
		return unknown("the staging directory", err)
	}
	var out []verdict
	if len(s.Others) > 0 {
		above := h.StageDir[:strings.LastIndexByte(h.StageDir, '/')+1]
		out = append(out, verdict{
			level: Warn, text: fmt.Sprintf("left in %s: %s", above, printable(strings.Join(s.Others, ", "))),
			remedy: "ssh HOST sudo ls -l " + above + " and remove what nobody needs",
		})
	}
	switch {
	case !s.Exists:
		return append(out, pass(s.Dir+" is free")...)
	case !s.Marker && in.Run == "":
		return append(out, verdict{
			level: Block, text: s.Dir + " is there already, and was not completed: nothing is unpacked over it",
			remedy: "look at it, then: ssh HOST sudo rm -rf -- " + s.Dir,
		})
	}
	if strange := strangers(in.Target, s); len(strange) > 0 {
		return append(out, verdict{
			level: Block, text: s.Dir + " holds files that are not of this target: " + printable(strings.Join(strange, ", ")),
			remedy: "look at it, then: ssh HOST sudo rm -rf -- " + s.Dir,
		})
	}
	return append(out, pass(s.Dir+" holds this target")...)
}

// strangers lists staged packages that are none of the target's.
func strangers(t release.Target, s Staged) []string {
	var out []string
	for name, sum := range s.Debs {
		if !slices.ContainsFunc(t.Debs, func(d release.Deb) bool { return d.SHA256 == sum }) && !strings.HasPrefix(name, agentPackage) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func judgeStagedPrograms(in Input, h HostInput) []verdict {
	s, err := h.Facts.Staged.Get()
	if err != nil || !s.Exists {
		return nil // judgeStaging speaks of the directory
	}
	var out []verdict
	seen := false
	for _, p := range h.Parts {
		if why, failed := s.Failed[p]; failed {
			out = append(out, block(fmt.Sprintf("the unpacked %s does not say its version: %s", p.Package(), why))...)
			continue
		}
		v, ok := s.Version[p]
		if !ok {
			continue
		}
		seen = true
		if !release.SameVersion(v, in.Target.Version) {
			out = append(out, block(fmt.Sprintf("the unpacked %s is %s, not %s", p.Package(), v, in.Target.Version))...)
		}
	}
	if len(out) == 0 && seen {
		return pass("the unpacked programs are " + in.Target.Version)
	}
	return out
}
