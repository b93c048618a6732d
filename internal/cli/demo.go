package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

// The demo's upgrade.
const (
	demoFrom  = "0.1.2"
	demoTo    = "0.1.4"
	demoAgent = "0.1.0"
)

func demoCmd(w World) *cobra.Command {
	nodes, keep := 5, false
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "demo", Short: "upgrade an embedded fleet: simulated hosts on loopback, over real SSH", Args: cobra.NoArgs,
		Long: "demo starts a fleet inside this process: 1 ctrl, 5 nodes and 2 gateways, each behind a real SSH server on\n" +
			"loopback. systemd, dpkg and the stand-in Kibotos on them are simulated; what is sent to them is what real hosts\n" +
			"get. It then plans and applies a rolling upgrade " + demoFrom + " → " + demoTo + ". It needs no root and leaves nothing behind.",
		Example: "  kibo-rollout demo",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "kibo-rollout-demo-")
			if err != nil {
				return fmt.Errorf("cannot make a directory for the demo: %w", err)
			}
			if !keep {
				defer func() { _ = os.RemoveAll(dir) }() // only files of ours below a temporary directory
			}
			return w.demo(c.Context(), f, dir, nodes)
		},
	}
	c.Flags().IntVar(&nodes, "nodes", 5, "how many nodes the fleet has")
	c.Flags().BoolVar(&keep, "keep", false, "keep the demo's directory")
	c.Flags().CountVarP(&f.verbose, "verbose", "v", "more detail")
	return c
}

// demo plans, applies and looks again, all through the same commands that an operator types.
func (w World) demo(ctx context.Context, f *fleetFlags, dir string, nodes int) error {
	fleet, err := simfleet.New(simfleet.Spec{
		Ctrl: 1, Nodes: nodes, E2B: 1, GW: 1, Version: demoFrom, InstancesPerNode: 3, Lat: demoLatencies(), Now: w.Now,
	})
	if err != nil {
		return fmt.Errorf("cannot make the embedded fleet: %w", err)
	}
	if err := fleet.Start(ctx); err != nil {
		return fmt.Errorf("cannot start the embedded fleet: %w", err)
	}
	defer func() { _ = fleet.Close() }() // the process ends
	inv, err := fleet.WriteInventory(dir)
	if err != nil {
		return err
	}
	debs := filepath.Join(dir, "debs")
	if err := fleet.WriteDebs(debs, demoTo); err != nil {
		return err
	}
	if _, err := fleet.WriteAgentDeb(debs, demoAgent); err != nil {
		return err
	}
	w.Env = demoEnv(w.Env, dir)
	w.Home = dir
	args := []string{"-i", inv.File, "--debs", debs, "--to", demoTo, "--yes"}
	for range f.verbose {
		args = append(args, "-v")
	}
	screen := w.screen()
	if err := screen.Line(fmt.Sprintf(
		"An embedded fleet: 1 ctrl, %d nodes, 2 gateways, with a stand-in Kibotos %s on simulated hosts. SSH is real.\n", nodes, demoFrom)); err != nil {
		return err
	}
	for _, words := range [][]string{append([]string{"apply"}, args...), {"status", "-i", inv.File}} {
		if err := screen.Line("$ kibo-rollout " + words[0] + "\n"); err != nil {
			return err
		}
		if code := Main(ctx, w, words); code != exitDone {
			return &exit{code: code, err: fmt.Errorf("the demo's %s ended with exit code %d", words[0], code)}
		}
	}
	return nil
}

// demoEnv keeps the demo's records inside its own directory, and the operator's agent out of it.
func demoEnv(env func(string) string, dir string) func(string) string {
	return func(name string) string {
		switch name {
		case "XDG_STATE_HOME":
			return filepath.Join(dir, "state")
		case "SSH_AUTH_SOCK":
			return ""
		}
		return env(name)
	}
}

func demoLatencies() host.Latencies {
	return host.Latencies{Install: 150 * time.Millisecond, Start: 200 * time.Millisecond, Stop: 100 * time.Millisecond}
}
