package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/view"
	"github.com/kibotos/kibo-rollout/inventory"
)

// explained is what the inventory says of one host, and why.
type explained struct {
	Host      string         `json:"host"`
	Groups    []string       `json:"groups"`
	Parts     []release.Part `json:"parts"`
	Variables []variable     `json:"variables"` // by name
}

// variable is one variable with its place, and what it overrode, strongest first.
type variable struct {
	Name     string     `json:"name"`
	Value    any        `json:"value"`
	Scope    string     `json:"scope"` // "group kibo_node", "host_vars of node-a", …; "default" if nothing sets it
	File     string     `json:"file,omitempty"`
	Line     int        `json:"line,omitempty"`
	Column   int        `json:"column,omitempty"`
	Overrode []variable `json:"overrode"`
}

func inventoryExplainCmd(w World) *cobra.Command {
	f := &fleetFlags{}
	c := &cobra.Command{
		Use: "explain HOST [VAR]", Short: "where the variables of a host come from, and what they overrode", Args: cobra.RangeArgs(1, 2),
		Example: "  kibo-rollout inventory explain -i inventory.yml node-a ansible_user",
		RunE: func(_ *cobra.Command, args []string) error {
			inv, err := w.load(f)
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			out, err := explain(inv, args[0], name)
			if err != nil {
				return fail(exitUsage, f.words("inventory", "list"), "%w", err)
			}
			if f.output == "json" {
				return view.JSON(w.Out, out)
			}
			return w.screen().Line(out.text(name == ""))
		},
	}
	f.add(c, "text", "json")
	return c
}

func explain(inv *inventory.Inventory, host, name string) (explained, error) {
	settings, err := inv.Explain(host, name)
	h, _ := inv.Host(host)
	out := explained{Host: host, Groups: h.Groups, Parts: h.Parts, Variables: []variable{}}
	if out.Parts == nil {
		out.Parts = []release.Part{}
	}
	if err != nil {
		v, ok := inventory.Known(name)
		if !ok || h.Name == "" {
			return out, err
		}
		out.Variables = []variable{{Name: name, Value: strings.ReplaceAll(v.Default, "`", ""), Scope: "default", Overrode: []variable{}}}
		return out, nil
	}
	for _, s := range settings {
		v := variable{s.Name, s.Value.Value, s.Scope, s.Value.File, s.Value.Line, s.Value.Column, []variable{}}
		if i := len(out.Variables) - 1; i >= 0 && out.Variables[i].Name == s.Name {
			out.Variables[i].Overrode = append(out.Variables[i].Overrode, v)
			continue
		}
		out.Variables = append(out.Variables, v)
	}
	return out, nil
}

// text is a line a variable, and below it one for each that it overrode.
func (e explained) text(head bool) string {
	var rows [][]string
	for _, v := range e.Variables {
		rows = append(rows, []string{v.Name + " = " + v.shown(), v.Scope, v.place()})
		for _, o := range v.Overrode {
			rows = append(rows, []string{"  overrode " + o.shown(), o.Scope, o.place()})
		}
	}
	var lines []string
	if head {
		parts := make([]string, len(e.Parts))
		for i, p := range e.Parts {
			parts[i] = string(p)
		}
		groups := slices.DeleteFunc(slices.Clone(e.Groups), func(g string) bool { return g == "all" })
		lines = append(lines, columns([][]string{{"host", e.Host}, {"parts", strings.Join(parts, ", ")}, {"groups", strings.Join(groups, ", ")}}))
	}
	if len(rows) > 0 {
		lines = append(lines, columns(rows))
	}
	return strings.Join(lines, "\n")
}

func (v variable) shown() string {
	if s, ok := v.Value.(string); ok && (v.Scope == "default" || s == "(not shown)") {
		return s
	}
	b, err := json.Marshal(v.Value)
	if err != nil {
		return fmt.Sprint(v.Value)
	}
	return string(b)
}

func (v variable) place() string {
	switch {
	case v.File == "":
		return ""
	case v.Line == 0:
		return v.File
	}
	return fmt.Sprintf("%s:%d:%d", v.File, v.Line, v.Column)
}
