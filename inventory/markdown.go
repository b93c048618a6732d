package inventory

import (
	"fmt"
	"strings"
)

// Markdown is the page that documents the table of variables.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Variables of the inventory\n\n")
	b.WriteString("Made from the table in `inventory/` by `make docs`. A host runs the parts of the groups it is in: `kibo_ctrl`, `kibo_node`,\n")
	b.WriteString("`kibo_e2b`, `kibo_gw`. Every variable is optional, and may stand wherever Ansible lets it stand; precedence is Ansible's.\n")
	b.WriteString("`kibo-rollout inventory explain HOST` shows what a host ends up with, and where each value was written.\n\n")
	b.WriteString("An unknown `kibo_` name is an error. Text that looks like a number, a date or a boolean must be quoted. Commands are lists of\n")
	b.WriteString("words, or text that is split at spaces outside quotes. Durations are `90s`, `15m`, `1h30m` or whole seconds.\n")
	b.WriteString("For editors there is a JSON Schema: [inventory.schema.json](../examples/inventory.schema.json).\n\n")
	b.WriteString("## Our own\n\n| variable | type | default | meaning | example |\n| --- | --- | --- | --- | --- |\n")
	ours := len(kiboVariables())
	for _, v := range Variables()[:ours] {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", v.Name, v.kind(), cell(v.Default), cell(v.Doc), code(v.Example))
	}
	fmt.Fprintf(&b, "\nKeys of `kibo_commands` for each part: %s.\n", codes(Operations()))
	fmt.Fprintf(&b, "Not built yet, so refused before connecting: %s.\n\n", codes(commandsNotBuilt()))
	fmt.Fprintf(&b, "Keys of `kibo_timeouts`: the same and %s.\n", codes(Waits()))
	fmt.Fprintf(&b, "Not built yet, so refused before connecting: %s.\n", codes(waitsNotBuilt()))
	b.WriteString("\n## Ansible's connection variables\n\n")
	b.WriteString("Honoured: used as Ansible uses them. Refused: an error unless it has the value shown. No effect: accepted, with a warning.\n")
	b.WriteString("Two spellings of one variable with different values are refused.\n\n")
	b.WriteString("| variable | other spellings | here | type | default or accepted | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, v := range Variables()[ours:] {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", v.Name, codes(v.Others), v.Standing, v.kind(), cell(v.Default), cell(v.Doc))
	}
	return b.String()
}

func (v Variable) kind() string {
	if v.Kind == Choice && v.Standing == Honoured {
		return "one of " + codes(v.Values)
	}
	return string(v.Kind)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

func codes(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = code(n)
	}
	return strings.Join(out, ", ")
}
