package cli

import (
	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/view"
)

func statusCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "status", Short: "hosts, parts, versions, gate, inhibitors, drain state and VMs; reads only", Args: cobra.NoArgs,
		Example: "  kibo-rollout status -i inventory.yml",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := w.open(f)
			if err != nil {
				return err
			}
			defer s.close()
			ans := s.look(c.Context(), noStage)
			st := view.NewStatus(machines(ans), ans.nodes)
			if f.output == "json" {
				err = view.JSON(w.Out, st)
			} else {
				err = w.screen().Status(st)
			}
			if err != nil {
				return err
			}
			if n := len(st.Failed); n > 0 {
				return fail(exitUnreachable, "", "%d of %d hosts did not answer", n, len(s.hosts))
			}
			return nil
		},
	}
	f.add(c, "text", "json")
	return c
}

func machines(a answer) []view.Machine {
	out := make([]view.Machine, 0, len(a.hosts))
	for _, h := range a.hosts {
		m := view.Machine{Name: h.host.Name, Address: h.host.Login.Address, Parts: h.host.Parts, Err: h.err, Facts: h.facts}
		if h.host.Has(release.Node) {
			m.NodeName = h.host.Kibo.NodeName
		}
		out = append(out, m)
	}
	return out
}
