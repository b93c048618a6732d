package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/inventory"
)

// checked is the outcome of inventory check for programs.
type checked struct {
	Hosts    int      `json:"hosts"`    // of the selection
	Parts    int      `json:"parts"`    // parts on them
	Problems []remark `json:"problems"` // with any, commands end with the code for bad input
	Warnings []remark `json:"warnings"`
}

// remark is one problem or warning.
type remark struct {
	File   string   `json:"file,omitempty"`
	Line   int      `json:"line,omitempty"`
	Column int      `json:"column,omitempty"`
	What   string   `json:"what"`
	Next   string   `json:"next,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`
}

func inventoryCheckCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "check", Short: "say everything that is wrong with the inventory, connecting to nothing", Args: cobra.NoArgs,
		Example: "  kibo-rollout inventory check -i inventory.yml",
		RunE: func(*cobra.Command, []string) error {
			out, err := w.checkInventory(f)
			if f.output != "json" {
				if err == nil {
					err = w.screen().Line(fmt.Sprintf("%d hosts, %d parts, nothing wrong", out.Hosts, out.Parts))
				}
				return err
			}
			if err != nil {
				out.Problems = remarks(err)
			}
			if failed := view.JSON(w.Out, out); failed != nil {
				return failed
			}
			return err
		},
	}
	f.add(c, "text", "json")
	return c
}

func (w World) checkInventory(f *fleetFlags) (checked, error) {
	out := checked{Problems: []remark{}, Warnings: []remark{}}
	inv, err := w.load(f)
	if err != nil {
		return out, err
	}
	if warnings := inv.Warnings(); len(warnings) > 0 {
		out.Warnings = remarks(warnings)
	}
	hosts, err := w.selection(inv, f)
	if err != nil {
		return out, err
	}
	out.Hosts = len(hosts)
	for _, h := range hosts {
		out.Parts += len(h.Parts)
		if h.Problem != nil {
			_ = w.errScreen().Line(fmt.Sprintf("note: %s runs no part and could not be reached:\n%v", h.Name, h.Problem))
		}
	}
	if refused := inv.Refused(); len(refused) > 0 {
		return out, fail(exitUsage, f.words("inventory", "check"), "cannot use the inventory:\n%w", refused)
	}
	return out, nil
}

// remarks takes an error apart into what a program can use.
func remarks(err error) []remark {
	var problems inventory.Problems
	if !errors.As(err, &problems) {
		return []remark{{What: err.Error()}}
	}
	out := make([]remark, len(problems))
	for i, p := range problems {
		out[i] = remark{p.File, p.Line, p.Column, p.What, p.Next, p.Hosts}
	}
	return out
}
