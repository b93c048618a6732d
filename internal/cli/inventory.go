package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/inventory"
)

func inventoryCmd(w World) *cobra.Command {
	c := &cobra.Command{Use: "inventory", Short: "what the inventory says, before anything is connected to"}
	c.AddCommand(inventoryListCmd(w), inventoryCheckCmd(w))
	return c
}

// load reads the inventory; what is wrong with it is bad input.
func (w World) load(f *fleetFlags) (*inventory.Inventory, error) {
	if len(f.inventory) == 0 {
		return nil, fail(exitUsage, "-i inventory.yml", "say which inventory: -i FILE")
	}
	inv, err := inventory.Load(f.inventory, inventory.Options{
		ExtraVars: f.extra, Stdin: w.In, Run: inventory.RunProgram(context.Background()),
	})
	if err != nil {
		return nil, fail(exitUsage, "", "cannot use the inventory:\n%w", err)
	}
	for _, p := range inv.Warnings() {
		_ = w.errScreen().Line("warning: " + p.Error())
	}
	return inv, nil
}

func inventoryListCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	secrets := false
	c := &cobra.Command{
		Use: "list", Short: "hosts with their parts; as JSON in the shape of ansible-inventory --list", Args: cobra.NoArgs,
		Example: "  kibo-rollout inventory list -i inventory.yml --output json",
		RunE: func(*cobra.Command, []string) error {
			inv, err := w.load(f)
			if err != nil {
				return err
			}
			if f.output == "json" {
				out, err := inv.List(secrets)
				if err != nil {
					return err
				}
				_, err = w.Out.Write(append(out, '\n'))
				return err
			}
			hosts, err := inv.Select(f.limit)
			if err != nil {
				return fail(exitUsage, "", "%w", err)
			}
			for _, h := range hosts {
				if err := w.screen().Line(fmt.Sprintf("%s  %v  %s", h.Name, h.Parts, h.Login.Address)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(c, "text", "json")
	c.Flags().BoolVar(&secrets, "show-secrets", false, "print passwords too")
	return c
}

func inventoryCheckCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "check", Short: "read the inventory and say what is wrong with it", Args: cobra.NoArgs,
		Example: "  kibo-rollout inventory check -i inventory.yml",
		RunE: func(*cobra.Command, []string) error {
			inv, err := w.load(f)
			if err != nil {
				return err
			}
			hosts, err := inv.Select(f.limit)
			if err != nil {
				return fail(exitUsage, "", "%w", err)
			}
			return w.screen().Line(fmt.Sprintf("%d hosts, nothing wrong", len(hosts)))
		},
	}
	f.add(c)
	return c
}
