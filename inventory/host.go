// Package inventory reads Ansible inventories in YAML: groups, hosts, variables and where each was written.
// It knows nothing of SSH, packages, steps or colour.
package inventory

import (
	"fmt"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Host is one machine of the fleet with everything the inventory says of it, resolved.
type Host struct {
	Name   string           // inventory_hostname
	Groups []string         // sorted
	Parts  []release.Part   // in part order; from groups kibo_ctrl, kibo_node, kibo_e2b, kibo_gw or from kibo_parts
	Vars   map[string]Value // every variable after precedence
	Login  Login
	Kibo   Kibo
	// Problem says why this host cannot be reached as the inventory has it. Only hosts that run no part of the fleet
	// may have one (Load fails otherwise), and their Login is empty.
	Problem error
}

// Has reports whether the host runs a part.
func (h Host) Has(p release.Part) bool {
	for _, q := range h.Parts {
		if q == p {
			return true
		}
	}
	return false
}

// Value is one variable with the place it was written at.
type Value struct {
	Value  any    // string, bool, int, float64, []any, map[string]any, nil
	File   string // as given to Load
	Line   int
	Column int
}

// Login is how to reach a host, from Ansible's connection variables. Empty fields were not said by the
// inventory and fall to ssh_config and defaults.
type Login struct {
	Address      string   // ansible_host; default the inventory name
	Port         int      // 0: not said
	User         string   // "": not said
	KeyFiles     []string // ansible_ssh_private_key_file
	Password     string   // ansible_password, or ansible_ssh_pass
	CommonArgs   []string // ansible_ssh_common_args and extra_args, split into words
	Timeout      time.Duration
	HostKeyCheck *bool  // ansible_host_key_checking; false is refused later with the reason
	Become       *bool  // ansible_become
	BecomePass   string // ansible_become_password
	Retries      int    // ansible_ssh_retries
}

// Target is address and port as one word; without a port if none was said.
func (l Login) Target() string {
	switch {
	case l.Port == 0:
		return l.Address
	case strings.Contains(l.Address, ":"):
		return fmt.Sprintf("[%s]:%d", l.Address, l.Port)
	}
	return fmt.Sprintf("%s:%d", l.Address, l.Port)
}

// Kibo is the typed form of the kibo_* variables. Defaults are filled in.
type Kibo struct {
	NodeName  string                               // kibo_node_name; default the inventory name
	CLI       []string                             // kibo_cli; default ["kibo"]
	CLIOn     string                               // kibo_cli_on: "ctrl" (default), "local" or a host name
	StageDir  string                               // kibo_stage_dir; default /var/lib/kibo-rollout/stage
	StateDir  string                               // kibo_state_dir; default /var/lib/kibo-rollout
	Commands  map[release.Part]map[string][]string // kibo_commands: part → operation → argv
	Config    map[release.Part]string              // kibo_config; default Part.Config()
	Gate      string                               // kibo_gate: managed (default), external, off
	OffReason string                               // kibo_gate_reason: needed with off
	WindowMax time.Duration                        // kibo_window_max; default 1h
	Timeouts  map[string]time.Duration             // kibo_timeouts: operation → limit
	Hooks     map[string][]string                  // kibo_hooks: hook name → argv
	// NextConfig is kibo_next_config: a file on this machine with the node's configuration in the target's form (K25).
	NextConfig string
	// FleetLockURL and FleetLockGroup are fleet_lock_url and fleet_lock_group: a FleetLock service to ask; "" none.
	FleetLockURL   string
	FleetLockGroup string
	VMMUnits       string // kibo_vmm_units: unit name pattern of VMMs; default kibotos-vmm-*.service
}
