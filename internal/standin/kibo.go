package standin

import (
	"encoding/json"
	"flag"
	"fmt"
	"text/tabwriter"
)

// runKibo is the operator's `kibo`: node list, node drain NODE, node cancel-drain NODE.
func runKibo(env Env, args []string) error {
	flags := newFlags(env, "kibo")
	configPath := flags.String("config", KiboConfig, "configuration with ctrl = \"ADDR:PORT\"")
	addr := flags.String("ctrl", "", "ADDR:PORT of ctrl, instead of the configuration")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	args = flags.Args()
	if len(args) < 2 || (args[0] != "node" && args[0] != "standin-session") {
		return usage(env, "usage: kibo [--ctrl ADDR:PORT] node list [--output json] | drain NODE | cancel-drain NODE")
	}
	if *addr == "" {
		var c struct {
			Ctrl string `toml:"ctrl"`
		}
		if _, err := readTOML(env, *configPath, &c); err != nil {
			return err
		}
		*addr = c.Ctrl
	}
	if args[0] == "standin-session" {
		resp, err := askCtrl(env, *addr, Request{Op: OpSession, Node: args[1]})
		if err == nil {
			_, _ = fmt.Fprintln(env.Stdout(), resp.Plane)
		}
		return err
	}
	switch verb, rest := args[1], args[2:]; {
	case verb == "list":
		return kiboList(env, *addr, rest)
	case verb == "drain" && len(rest) == 1:
		return kiboDrain(env, *addr, OpDrain, rest[0], "draining")
	case verb == "cancel-drain" && len(rest) == 1:
		return kiboDrain(env, *addr, OpCancelDrain, rest[0], "no longer drained")
	}
	return usage(env, "usage: kibo node list [--output json] | drain NODE | cancel-drain NODE")
}

func askCtrl(env Env, addr string, req Request) (Response, error) {
	resp, err := env.CallCtrl(addr, req)
	if err != nil {
		return resp, fmt.Errorf("cannot reach ctrl at %s: %w", addr, err)
	}
	if resp.Error != "" {
		return resp, fmt.Errorf("cannot %s: %s", req.Op, resp.Error)
	}
	return resp, nil
}

func kiboDrain(env Env, addr string, op Op, node, done string) error {
	if _, err := askCtrl(env, addr, Request{Op: op, Node: node}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.Stdout(), "%s: %s\n", node, done)
	return nil
}

func kiboList(env Env, addr string, args []string) error {
	flags := newFlags(env, "kibo node list")
	output := flags.String("output", "text", "text or json")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return errUsage
	}
	resp, err := askCtrl(env, addr, Request{Op: OpList})
	if err != nil {
		return err
	}
	if *output == "json" {
		rows := resp.Nodes
		if rows == nil {
			rows = []NodeRow{}
		}
		return json.NewEncoder(env.Stdout()).Encode(rows)
	}
	w := tabwriter.NewWriter(env.Stdout(), 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tSTATE\tRELEASE\tINSTANCES\tCOMMANDS\tTRANSFERS")
	for _, n := range resp.Nodes {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\n", n.Name, n.State, n.Release, n.Instances, n.Commands, n.Transfers)
	}
	return w.Flush()
}

func newFlags(env Env, name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(env.Stderr())
	return flags
}
