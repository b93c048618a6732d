package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/plan"
)

// Commands prints every command that the walk of a plan would run, in order, as the same strings: check mode is nothing
// but this. Lines that start with # say where and why. Nothing is folded, so that a line can be pasted.
func (s Screen) Commands(p plan.Plan) error {
	g := s.page()
	for _, b := range slices.Concat(p.Blocks, p.Clean) {
		g.gap()
		g.line("%s", g.paint(strong, fmt.Sprintf("# wave %d, %s", b.Wave, blockTitle(b))))
		for _, st := range b.Steps {
			g.commandsOf(p.ID, st, "")
		}
		for _, st := range b.Finally {
			g.commandsOf(p.ID, st, "in any case: ")
		}
	}
	if len(p.Blocks) == 0 {
		g.line("# nothing to do: no command would be run")
	}
	return g.flush(s.Out)
}

func (p *page) commandsOf(run string, st plan.Step, when string) {
	p.line("%s", p.paint(faint, "# "+Line(st.Host)+": "+when+stepLine(st)))
	for _, a := range st.Act {
		where := ""
		if a.Host != st.Host {
			where = p.paint(faint, "# on "+Line(a.Host)) + "\n"
		}
		p.line("%s%s", where, actionLine(run, a))
	}
	if st.Done != nil {
		p.line("%s", p.paint(faint, "# complete when: "+condLine(*st.Done)))
	}
	for _, back := range st.Back {
		p.commandsOf(run, back, "only if refused: ")
	}
}

// actionLine is one action as it runs. An upload is no command on a host, so it is a comment.
func actionLine(run string, a plan.Action) string {
	switch {
	case a.Verb == plan.Upload && a.Deb != nil:
		return Line(fmt.Sprintf("# upload %s (%s, sha256 %s) to %s", a.Deb.File, size(a.Deb.Size), a.Deb.SHA256, a.Path))
	case a.Verb == plan.Job && a.Job != nil:
		return Line(plan.JobCommand(run, a, 1).String())
	}
	return Line(a.Command.String())
}

// condLine is a condition in words.
func condLine(c plan.Cond) string {
	if len(c.Of) > 0 {
		parts := make([]string, len(c.Of))
		for i, of := range c.Of {
			parts[i] = condLine(of)
		}
		glue := " and "
		if c.Kind == plan.CondAny {
			glue = " or "
		}
		return strings.Join(parts, glue)
	}
	words := []string{string(c.Kind), c.Package, string(c.Part), c.Node, strings.Join(c.Nodes, ","), c.Value}
	if c.Host != "" {
		words = append(words, "on "+c.Host)
	}
	return Line(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}
