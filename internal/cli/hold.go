package cli

import (
	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/plan"
)

func gateHoldCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	why, id := "", ""
	c := &cobra.Command{
		Use: "hold --why TEXT", Short: "say no to every change on the selected hosts, until released", Args: cobra.NoArgs,
		Example: "  kibo-rollout gate hold -i inventory.yml --limit node-a --why 'customer demo until noon'",
		RunE: func(c *cobra.Command, _ []string) error {
			if why == "" {
				return fail(exitUsage, "kibo-rollout gate hold --why TEXT", "say why: whoever finds the hold will want to know")
			}
			if id == "" {
				id = "hold-" + w.Now().UTC().Format("20060102-150405")
			}
			return w.gateEach(c.Context(), f, plan.HoldCommand(id, why, w.User), "held as "+id, true)
		},
	}
	f.add(c, "text", "json")
	c.Flags().StringVar(&why, "why", "", "why, for whoever looks at the host")
	c.Flags().StringVar(&id, "id", "", "name of the hold; default: made from the time")
	return c
}

func gateReleaseCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	id, all := "", false
	c := &cobra.Command{
		Use: "release (--id ID | --all)", Short: "take holds away on the selected hosts", Args: cobra.NoArgs,
		Example: "  kibo-rollout gate release -i inventory.yml --limit node-a --all",
		RunE: func(c *cobra.Command, _ []string) error {
			if all == (id != "") {
				return fail(exitUsage, "kibo-rollout gate release --id ID", "say which hold to take away: --id or --all, one of them")
			}
			return w.gateEach(c.Context(), f, plan.ReleaseCommand(id), "released", true)
		},
	}
	f.add(c, "text", "json")
	c.Flags().StringVar(&id, "id", "", "the hold's name, as status shows it")
	c.Flags().BoolVar(&all, "all", false, "every hold, whoever placed it")
	return c
}
