package cli

import (
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// fleet are the hosts of an inventory that the commands may reach for.
type fleet struct {
	all   []inventory.Host // that run a part, and those where the kibo command is run
	hosts []inventory.Host // selected, running a part
}

// fleet picks them, and refuses what nothing honours: this is the last step before connecting. Hosts that run no part belong to
// somebody else's work: an inventory is often shared.
func (w World) fleet(inv *inventory.Inventory, f *fleetFlags) (fleet, error) {
	if refused := inv.Refused(); len(refused) > 0 {
		return fleet{}, fail(exitUsage, f.words("inventory", "check"), "cannot use the inventory:\n%w", refused)
	}
	selected, err := w.selection(inv, f)
	if err != nil {
		return fleet{}, err
	}
	var out fleet
	callers := map[string]bool{}
	for _, h := range inv.Hosts() {
		if len(h.Parts) > 0 {
			callers[h.Kibo.CLIOn] = true
		}
	}
	for _, h := range inv.Hosts() {
		if len(h.Parts) == 0 && !callers[h.Name] {
			continue
		}
		if h.Problem != nil {
			return fleet{}, fail(exitUsage, f.words("inventory", "check"), "cannot reach %s, where the kibo command is to be run:\n%w", h.Name, h.Problem)
		}
		out.all = append(out.all, h)
	}
	var without []string
	for _, h := range selected {
		if len(h.Parts) == 0 {
			without = append(without, h.Name)
			continue
		}
		out.hosts = append(out.hosts, h)
	}
	if len(out.hosts) == 0 {
		return fleet{}, fail(exitUsage, f.words("inventory", "list"), "cannot go on with %s: none runs a part; "+
			"parts come from the groups kibo_ctrl, kibo_node, kibo_e2b, kibo_gw or from kibo_parts", some(without))
	}
	if len(without) > 0 {
		_ = w.errScreen().Line(fmt.Sprintf("note: %s left out: no part runs there", some(without)))
	}
	return out, nil
}

// selection is what --limit names.
func (w World) selection(inv *inventory.Inventory, f *fleetFlags) ([]inventory.Host, error) {
	hosts, err := inv.Select(f.limit)
	if err != nil {
		return nil, fail(exitUsage, f.words("inventory", "list"), "%w", err)
	}
	return hosts, nil
}

// words is a command line of ours with the same inventory, to paste.
func (f *fleetFlags) words(words ...string) string {
	argv := append([]string{"kibo-rollout"}, words...)
	for _, i := range f.inventory {
		argv = append(argv, "-i", i)
	}
	return command.Command{Argv: argv}.String()
}

// some lists up to five names and counts the rest.
func some(names []string) string {
	const shown = 5
	word := "host "
	if len(names) > 1 {
		word = "hosts "
	}
	if len(names) <= shown {
		return word + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s%s and %d more", word, strings.Join(names[:shown], ", "), len(names)-shown)
}
