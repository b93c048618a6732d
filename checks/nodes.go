package checks

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// NodesCommand asks ctrl for its nodes. cli is the argv of the operator's command, ["kibo"] if empty.
func NodesCommand(cli []string) command.Command {
	if len(cli) == 0 {
		cli = []string{"kibo"}
	}
	return command.Command{Argv: slices.Concat(cli, []string{"node", "list"}), Effect: command.Reads}
}

// NodesFact is the fact that the result of NodesCommand makes.
func NodesFact(res command.Result) Fact[[]NodeRow] {
	if err := succeeded(res); err != nil {
		return Unknown[[]NodeRow](fmt.Errorf("ctrl does not list its nodes: %w", err))
	}
	rows, err := ParseNodes(res.Stdout)
	if err != nil {
		return Unknown[[]NodeRow](fmt.Errorf("cannot read the list of nodes: %w", err))
	}
	return Known(rows)
}

// ParseNodes reads what `kibo node list` prints, a table with headings or JSON. Columns are found by their names, in any
// order, among others. Without NAME, STATE and RELEASE, or with a line that does not fit, it errs rather than guesses.
func ParseNodes(out []byte) ([]NodeRow, error) {
	if len(out) > maxOutput {
		return nil, errors.New("the list is too long")
	}
	s := string(out)
	if suspicious(s) {
		return nil, errors.New("the list has control characters")
	}
	var cells []map[string]string
	var err error
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") {
		cells, err = jsonCells(trimmed)
	} else {
		cells, err = tableCells(s)
	}
	if err != nil {
		return nil, err
	}
	rows := make([]NodeRow, 0, len(cells))
	seen := map[string]bool{}
	for _, c := range cells {
		r, err := nodeRow(c)
		if err != nil {
			return nil, err
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("node %s is there twice", r.Name)
		}
		seen[r.Name] = true
		rows = append(rows, r)
	}
	return rows, nil
}

// nodeRow makes a row of its cells by column name.
func nodeRow(c map[string]string) (NodeRow, error) {
	r := NodeRow{Name: c["NAME"], State: strings.ToUpper(c["STATE"]), Release: c["RELEASE"]}
	if !word(r.Name, 253) {
		return r, fmt.Errorf("not a node's name: %q", printable(r.Name))
	}
	if !word(r.State, 64) {
		return r, fmt.Errorf("not a state of node %s: %q", r.Name, printable(r.State))
	}
	if v, err := release.Normal(r.Release); err == nil {
		r.Release = v
	} else if r.Release = printable(r.Release); r.Release == "-" {
		r.Release = "" // not known to ctrl: never connected
	}
	numbers := []struct {
		name string
		into *int
	}{{"INSTANCES", &r.Instances}, {"COMMANDS", &r.Commands}, {"TRANSFERS", &r.Transfers}}
	for _, n := range numbers {
		*n.into = -1
		v, ok := c[n.name]
		if !ok || v == "" || v == "-" {
			continue
		}
		i, err := strconv.Atoi(v)
		if err != nil || i < 0 {
			return r, fmt.Errorf("not a number of %s of node %s: %q", strings.ToLower(n.name), r.Name, printable(v))
		}
		*n.into = i
	}
	for _, name := range []string{"UNREADY", "REASON", "MESSAGE", "CONDITION"} {
		if v := printable(c[name]); v != "" && v != "-" {
			r.Unready = v
			break
		}
	}
	return r, nil
}
