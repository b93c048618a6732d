package standin

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// errUsage is a wrong command line that was already explained.
var errUsage = errors.New("usage")

func usage(env Env, text string) error {
	_, _ = fmt.Fprintln(env.Stderr(), text)
	return errUsage
}

// Main runs one command of a program that ends by itself and returns the exit status: 0 done, 1 failed or
// blockers, 2 wrong command line. program is the base name: kibotos-ctrl, kibotos-node, kibotos-e2b, kibotos-gw,
// kibo. Services ("serve", gateways without arguments) are not its business.
func Main(env Env, program string, args []string) int {
	part, ok := partOf(program)
	if !ok {
		_, _ = fmt.Fprintf(env.Stderr(), "error: no program %s in the stand-in\n", program)
		return 2
	}
	r, err := ReadRelease(env, part)
	if err != nil {
		_, _ = fmt.Fprintf(env.Stderr(), "error: %v\n", err)
		return 1
	}
	if len(args) > 0 && (args[0] == "version" || args[0] == "--version") {
		return version(env, program, r, args)
	}
	status := 0
	switch {
	case program == "kibo":
		err = runKibo(env, args)
	case part == release.Ctrl:
		status, err = runCtrl(env, r, args)
	case part == release.Node:
		status, err = runNode(env, r, args)
	default:
		err = usage(env, program+" takes no arguments but version: its configuration is its environment")
	}
	switch {
	case errors.Is(err, errUsage):
		return 2
	case err != nil:
		_, _ = fmt.Fprintf(env.Stderr(), "error: %v\n", err)
		return 1
	}
	return status
}

// partOf tells whose release traits a program reads; kibo comes with ctrl.
func partOf(program string) (release.Part, bool) {
	if program == "kibo" {
		return release.Ctrl, true
	}
	for _, p := range release.Parts() {
		if p.Package() == program {
			return p, true
		}
	}
	return "", false
}

func version(env Env, program string, r Release, args []string) int {
	if len(args) == 2 && args[0] == "version" && args[1] == "--json" {
		_ = json.NewEncoder(env.Stdout()).Encode(struct {
			Name     string `json:"name"`
			Version  string `json:"version"`
			Revision string `json:"revision"`
			StandIn  bool   `json:"standIn"`
		}{program, r.Version, r.Revision, true})
		return 0
	}
	_, _ = fmt.Fprintf(env.Stdout(), "%s %s (revision %s), stand-in: not the real Kibotos\n", program, r.Version, r.Revision)
	return 0
}

func runCtrl(env Env, r Release, args []string) (int, error) {
	if len(args) == 0 {
		return 0, usage(env, "usage: kibotos-ctrl version|check-upgrade|migrate|serve|standin-seed")
	}
	flags := newFlags(env, "kibotos-ctrl "+args[0])
	configPath := flags.String("config", release.Ctrl.Config(), "configuration file")
	workspaces := 0
	if args[0] == "standin-seed" {
		flags.IntVar(&workspaces, "workspaces", 3, "how many Workspaces there shall be")
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return 0, errUsage
	}
	switch args[0] {
	case "check-upgrade":
		return CtrlCheckUpgrade(env, r, *configPath), nil
	case "migrate":
		return 0, CtrlMigrate(env, r, *configPath)
	case "standin-seed":
		return 0, SeedCtrl(env, r, *configPath, workspaces)
	}
	return 0, usage(env, "error: no command "+args[0]+" here")
}

// nodeOptions are the flags of kibotos-node's commands.
type nodeOptions struct {
	config, runtimeDir, operation, instance string
	preview                                 bool
	instances                               int
}

func parseNode(env Env, args []string) (nodeOptions, error) {
	var o nodeOptions
	flags := newFlags(env, "kibotos-node "+args[0])
	flags.StringVar(&o.config, "config", release.Node.Config(), "configuration file")
	switch args[0] {
	case "check-upgrade":
		flags.BoolVar(&o.preview, "preview", false, "take no lock, look at no process")
		flags.StringVar(&o.runtimeDir, "runtime-dir", "", "the VM runtime of the target")
	case "check-maintenance":
		flags.StringVar(&o.operation, "operation", "", "upgrade or remove")
	case "standin-seed":
		flags.IntVar(&o.instances, "instances", 3, "how many Instances there shall be")
	case "standin-stop":
		flags.StringVar(&o.instance, "instance", "", "the Instance whose Workspace is stopped")
	}
	if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
		return o, errUsage
	}
	return o, nil
}

func runNode(env Env, r Release, args []string) (int, error) {
	if len(args) == 0 {
		return 0, usage(env, "usage: kibotos-node version|check-upgrade|check-maintenance|serve|end-dataplane|standin-seed|standin-stop")
	}
	o, err := parseNode(env, args)
	if err != nil {
		return 0, err
	}
	switch args[0] {
	case "check-upgrade":
		return NodeCheckUpgrade(env, r, o.config, o.runtimeDir, o.preview), nil
	case "check-maintenance":
		if o.operation != operationUpgrade && o.operation != operationRemove {
			return 0, usage(env, "error: --operation must be upgrade or remove")
		}
		return NodeCheckMaintenance(env, r, o.config, o.operation), nil
	case "standin-seed":
		return 0, SeedNode(env, r, o.config, o.instances)
	case "standin-stop":
		return 0, StopInstance(env, r, o.config, o.instance)
	case "end-dataplane":
		c, err := ReadNodeConfig(env, o.config, r)
		if err != nil {
			return 0, err
		}
		return 0, EndDataPlanes(env, c.StateDir)
	}
	return 0, usage(env, "error: no command "+args[0]+" here")
}
