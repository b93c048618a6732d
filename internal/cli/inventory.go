package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/inventory"
)

func inventoryCmd(w World) *cobra.Command {
	c := &cobra.Command{
		Use: "inventory", Short: "what the inventory says, before anything is connected to",
		Example: "  kibo-rollout inventory check -i inventory.yml",
	}
	c.AddCommand(inventoryListCmd(w), inventoryCheckCmd(w), inventoryExplainCmd(w))
	return c
}

// load reads the inventory; what is wrong with it is bad input.
func (w World) load(f *fleetFlags) (*inventory.Inventory, error) {
	inv, err := w.read(f)
	if err != nil {
		return nil, err
	}
	for _, p := range inv.Warnings() {
		_ = w.errScreen().Line("warning: " + p.Error())
	}
	return inv, nil
}

// read is load that leaves the warnings to its caller.
func (w World) read(f *fleetFlags) (*inventory.Inventory, error) {
	if len(f.inventory) == 0 {
		return nil, fail(exitUsage, "kibo-rollout inventory check -i inventory.yml", "say which inventory: -i FILE")
	}
	ctx, end := w.untilStopped()
	defer end()
	inv, err := inventory.Load(f.inventory, inventory.Options{
		ExtraVars: f.extra, Stdin: w.In, Run: inventory.RunProgram(ctx),
	})
	if err == nil {
		return inv, nil
	}
	if ctx.Err() != nil {
		return nil, fail(exitInterrupted, "", "stopped while reading the inventory; nothing was connected to")
	}
	return nil, fail(exitUsage, f.words("inventory", "check"), "cannot use the inventory:\n%w", err)
}

// untilStopped is a context that ends when the operator asks to stop: a program that makes an inventory may hang, and nothing is
// lost with it.
func (w World) untilStopped() (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	go func() {
		select {
		case <-w.Stop:
			end()
		case <-ctx.Done():
		}
	}()
	return ctx, end
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
			hosts, err := w.selection(inv, f)
			if err != nil {
				return err
			}
			if f.output == "json" {
				out, err := inv.List(secrets, hosts...)
				if err != nil {
					return err
				}
				_, err = w.Out.Write(out)
				return err
			}
			rows := [][]string{{"HOST", "PARTS", "ADDRESS", "USER", "GROUPS"}}
			for _, h := range hosts {
				rows = append(rows, hostRow(h))
			}
			return w.screen().Line(columns(rows))
		},
	}
	f.add(c, "text", "json")
	c.Flags().BoolVar(&secrets, "show-secrets", false, "print passwords too, as JSON only")
	return c
}

func hostRow(h inventory.Host) []string {
	address, parts := h.Login.Target(), make([]string, len(h.Parts))
	for i, p := range h.Parts {
		parts[i] = string(p)
	}
	if h.Problem != nil {
		address = "unknown"
	}
	var groups []string
	for _, g := range h.Groups {
		if g != "all" {
			groups = append(groups, g)
		}
	}
	return []string{h.Name, strings.Join(parts, ","), address, h.Login.User, strings.Join(groups, ",")}
}

// columns sets rows of text under each other. An empty field is a hyphen, so that every line has as many words.
func columns(rows [][]string) string {
	var width []int
	for _, r := range rows {
		for i, s := range r {
			if i == len(width) {
				width = append(width, 1)
			}
			width[i] = max(width[i], len([]rune(s)))
		}
	}
	lines := make([]string, len(rows))
	for k, r := range rows {
		var b strings.Builder
		for i, s := range r {
			if s == "" {
				s = "-"
			}
			b.WriteString(s + strings.Repeat(" ", width[i]-len([]rune(s))+2))
		}
		lines[k] = strings.TrimRight(b.String(), " ")
	}
	return strings.Join(lines, "\n")
}
