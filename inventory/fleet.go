package inventory

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// checkFleet finds what only shows between hosts: one machine under two names, one node name twice, a missing host.
// fleet: only hosts that run a part count, because at least one does.
func (inv *Inventory) checkFleet(fleet bool) {
	addresses, nodes := map[string]Host{}, map[string]Host{}
	for _, h := range inv.hosts {
		if fleet && len(h.Parts) == 0 {
			continue
		}
		key := machine(h.Login)
		if other, ok := addresses[key]; ok {
			inv.add(inv.g.hosts[h.Name].at, fmt.Sprintf("%s and %s are one machine under two names (%s)", other.Name, h.Name, key),
				"give it one name and put that into every group it belongs to")
		}
		addresses[key] = h
		if h.Has(release.Node) {
			if other, ok := nodes[h.Kibo.NodeName]; ok {
				inv.add(inv.g.hosts[h.Name].at, fmt.Sprintf("%s and %s have one node name at ctrl (%s)", other.Name, h.Name, h.Kibo.NodeName),
					"set kibo_node_name on each")
			}
			nodes[h.Kibo.NodeName] = h
		}
		inv.checkCLIHost(h)
	}
}

func (inv *Inventory) checkCLIHost(h Host) {
	on := h.Kibo.CLIOn
	if _, ok := inv.byName[on]; ok || on == "ctrl" || on == "local" {
		return
	}
	v := h.Vars["kibo_cli_on"]
	names := []string{"ctrl", "local"}
	for _, o := range inv.hosts {
		names = append(names, o.Name)
	}
	inv.add(place{v.File, v.Line, v.Column}, fmt.Sprintf("kibo_cli_on: there is no host %q", on), meant(on, names), h.Name)
}

// machine is address and port in one spelling. A port that is not said is taken for 22: two names for one address where
// only one says so are far more often a slip than two machines.
func machine(l Login) string {
	addr := strings.TrimSuffix(strings.ToLower(l.Address), ".")
	if ip, err := netip.ParseAddr(addr); err == nil {
		addr = ip.Unmap().String()
	}
	port := l.Port
	if port == 0 {
		port = 22
	}
	if strings.Contains(addr, ":") {
		addr = "[" + addr + "]"
	}
	return fmt.Sprintf("%s:%d", addr, port)
}
