package cli

import (
	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/view"
)

func versionCmd(w World) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs, Example: "  kibo-rollout version",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return view.JSONLine(w.Out, map[string]string{"name": "kibo-rollout", "version": w.Version})
			}
			return w.screen().Line("kibo-rollout " + w.Version)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}
