package inventory

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

const defaultWindow = time.Hour

var (
	hookName  = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	lockGroup = regexp.MustCompile(`^[a-zA-Z0-9.-]+$`) // FleetLock's own rule
	unitName  = regexp.MustCompile(`^[A-Za-z0-9:_.\\@*?-]+\.service$`)
)

// kiboVariables are our own.
func kiboVariables() []Variable {
	return slices.Concat(placeVariables(), configVariables(), walkVariables())
}

// placeVariables say what a host is and where things lie.
func placeVariables() []Variable {
	return []Variable{
		{Name: "kibo_parts", Kind: PartList, Standing: Honoured, Default: "from the groups kibo_ctrl, kibo_node, kibo_e2b, kibo_gw",
			Doc: "The parts that the host runs, together with those that its groups give it.", Example: "[ctrl, node]",
			set: func(*binding, item) {}}, // read before everything else, see Inventory.host
		{Name: "kibo_node_name", Kind: Text, Standing: Honoured, Default: "the host's inventory name",
			Doc: "The name by which ctrl knows the node, as `kibo node list` shows it.", Example: "node-a",
			set: func(b *binding, i item) {
				s, ok := b.word(i)
				if ok && (s[0] == '-' || strings.Contains(s, " ")) {
					b.fail(i, fmt.Sprintf("%q is no node name", s), "")
				} else if ok {
					b.host.Kibo.NodeName = s
				}
			}},
		{Name: "kibo_cli", Kind: Command, Standing: Honoured, Default: "`[kibo]`",
			Doc: "The operator command `kibo` with the words that must stand before its own.", Example: "[podman, exec, kibo-ctrl, kibo]",
			set: func(b *binding, i item) {
				if w, ok := b.argv(i); ok {
					b.host.Kibo.CLI = w
				}
			}},
		{Name: "kibo_cli_on", Kind: Text, Standing: Honoured, Default: "`ctrl`",
			NotBuilt: []string{"local"}, Doc: "Where the `kibo` command is run: `ctrl` (the ctrl host), `local` (this machine), or a host of the inventory.", Example: "bastion",
			set: func(b *binding, i item) {
				if s, ok := b.word(i); ok {
					b.host.Kibo.CLIOn = s
				}
			}},
		{Name: "kibo_stage_dir", Kind: Path, Standing: Honoured, Default: "`/var/lib/kibo-rollout/stage`",
			Doc: "The directory on the host in which target packages are staged and unpacked.", Example: "/srv/kibo-stage",
			set: func(b *binding, i item) {
				if s, ok := b.path(i); ok {
					b.host.Kibo.StageDir = s
				}
			}},
		{Name: "kibo_state_dir", Kind: Path, Standing: Honoured, Default: "`/var/lib/kibo-rollout`",
			Doc: "The directory on the ctrl host that holds runs and the fleet lock.", Example: "/srv/kibo-rollout",
			set: func(b *binding, i item) {
				if s, ok := b.path(i); ok {
					b.host.Kibo.StateDir = s
				}
			}},
	}
}

// configVariables say which files and units are meant.
func configVariables() []Variable {
	return []Variable{
		{Name: "kibo_config", Kind: Mapping, Standing: Honoured, Default: "`/etc/kibotos/PART/config.toml`, for gateways `config.env`",
			Doc: "Part to the path of its configuration on the host.", Example: "{node: /etc/kibotos/node/site.toml}",
			schema: func() map[string]any { return partSchema(kindSchema(Path, nil)) },
			set: func(b *binding, i item) {
				b.each(i, partNames(), func(k string, e item) {
					if s, ok := b.path(e); ok {
						b.host.Kibo.Config[release.Part(k)] = s
					}
				})
			}},
		{Name: "kibo_next_config", Kind: Text, Standing: Honoured, Default: "none",
			NotBuilt: []string{"*"}, Doc: "A file on this machine with the node's configuration in the form that the target wants. A relative path starts at the file that names it.",
			Example: "files/node-a.next.toml", set: setNextConfig},
		{Name: "kibo_vmm_units", Kind: Text, Standing: Honoured, Default: "`kibotos-vmm-*.service`",
			Doc: "The name pattern of the units that VMMs run in.", Example: `"kibotos-vmm-*.service"`,
			set: func(b *binding, i item) {
				s, ok := b.word(i)
				if ok && !unitName.MatchString(s) {
					b.fail(i, "is no name pattern of services", "for example kibotos-vmm-*.service")
				} else if ok {
					b.host.Kibo.VMMUnits = s
				}
			}},
	}
}

// walkVariables say how the walk behaves.
func walkVariables() []Variable {
	return []Variable{
		{Name: "kibo_commands", Kind: Mapping, Standing: Honoured, Default: "the documented commands",
			Doc:     "Part to operation to the command that is used instead of the documented one, for containers and unusual installations.",
			Example: "{gw: {stop: [podman, stop, kibo-gw]}}", schema: commandSchema, set: setCommands},
		{Name: "kibo_gate", Kind: Choice, Values: []string{"managed", "external", "off"}, Standing: Honoured, Default: "`managed`",
			Doc:     "Who opens windows: `managed` the walk itself, `external` somebody else and the walk only uses them, `off` nobody asks the gate (needs kibo_gate_reason).",
			Example: "external", set: func(b *binding, i item) { b.choice(i, []string{"managed", "external", "off"}, &b.host.Kibo.Gate) }},
		{Name: "kibo_gate_reason", Kind: Text, Standing: Honoured, Default: "none",
			Doc: "Why the gate is off. Shown in every plan.", Example: `"no systemd in this container"`,
			set: func(b *binding, i item) {
				if s, ok := b.text(i); ok {
					b.host.Kibo.OffReason = strings.TrimSpace(s)
				}
			}},
		{Name: "kibo_window_max", Kind: Duration, Standing: Honoured, Default: "`1h`",
			Doc: "The longest window that the walk opens on the host.", Example: "30m",
			set: func(b *binding, i item) {
				if d, ok := b.duration(i); ok {
					b.host.Kibo.WindowMax = d
				}
			}},
		{Name: "kibo_timeouts", Kind: Mapping, Standing: Honoured, Default: "each step's own limit",
			Doc: "Operation or wait to its time limit.", Example: "{ready: 10m, settle: 1h}",
			schema: func() map[string]any { return keySchema(timeoutNames(), kindSchema(Duration, nil)) },
			set: func(b *binding, i item) {
				b.host.Kibo.Timeouts = map[string]time.Duration{}
				b.each(i, timeoutNames(), func(k string, e item) {
					if d, ok := b.duration(e); ok {
						b.host.Kibo.Timeouts[k] = d
						b.unless(waitsNotBuilt(), k, e)
					}
				})
			}},
		{Name: "kibo_hooks", Kind: Mapping, Standing: Honoured, Default: "none",
			NotBuilt: []string{"*"}, Doc: "Hook name to the command that is run at that point of the walk.", Example: "{suspend-writes: [/opt/site/suspend]}",
			schema: hookSchema, set: setHooks},
		{Name: "fleet_lock_url", Kind: Text, Standing: Honoured, Default: "none",
			NotBuilt: []string{"*"}, Doc: "Base URL of a FleetLock service; every change of a host takes and gives back a slot there.", Example: "https://lock.example.net/",
			set: func(b *binding, i item) {
				s, ok := b.word(i)
				if !ok {
					return
				}
				if u, err := url.Parse(s); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
					b.fail(i, "is no http or https URL", "")
					return
				}
				b.host.Kibo.FleetLockURL = s
			}},
		{Name: "fleet_lock_group", Kind: Text, Standing: Honoured, Default: "`default`",
			NotBuilt: []string{"*"}, Doc: "The group whose slots are taken at the FleetLock service.", Example: "kibo",
			set: func(b *binding, i item) {
				s, ok := b.word(i)
				if ok && !lockGroup.MatchString(s) {
					b.fail(i, "may hold letters, digits, dots and hyphens only", "")
				} else if ok {
					b.host.Kibo.FleetLockGroup = s
				}
			}},
	}
}

func timeoutNames() []string { return append(Operations(), Waits()...) }

func (b *binding) choice(i item, values []string, to *string) {
	s, ok := b.text(i)
	if !ok {
		return
	}
	if !slices.Contains(values, s) {
		b.fail(i, "is one of "+strings.Join(values, ", "), meant(s, values))
		return
	}
	*to = s
}

func setNextConfig(b *binding, i item) {
	s, ok := b.word(i)
	if !ok {
		return
	}
	if !filepath.IsAbs(s) && !strings.HasPrefix(s, "~") && i.at.file != "-" && i.at.file != "-e" {
		s = filepath.Join(filepath.Dir(i.at.file), s)
	}
	b.host.Kibo.NextConfig = s
}

func setCommands(b *binding, i item) {
	b.host.Kibo.Commands = map[release.Part]map[string][]string{}
	b.each(i, partNames(), func(part string, e item) {
		ops := map[string][]string{}
		b.each(e, Operations(), func(op string, o item) {
			if w, ok := b.argv(o); ok {
				ops[op] = w
				b.unless(commandsNotBuilt(), op, o)
			}
		})
		b.host.Kibo.Commands[release.Part(part)] = ops
	})
}

func setHooks(b *binding, i item) {
	b.host.Kibo.Hooks = map[string][]string{}
	b.each(i, nil, func(k string, e item) {
		if !hookName.MatchString(k) {
			b.fail(e, "a hook's name has small letters, digits, hyphens and underscores", "")
			return
		}
		if w, ok := b.argv(e); ok {
			b.host.Kibo.Hooks[k] = w
		}
	})
}
