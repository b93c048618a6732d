package inventory

import (
	"fmt"
	"strings"
)

// Markdown documents the table of variables.
func Markdown() string {
	var b strings.Builder
	b.WriteString("## Variables of kibo-rollout\n\n")
	b.WriteString("All are optional and can be set for a host, a group or with `-e`. An unknown `kibo_` name is an error.\n")
	b.WriteString("Text that looks like a number, a date or a boolean must be quoted. Commands are lists of words, or text that is split at spaces outside quotes.\n")
	b.WriteString("Durations are `90s`, `15m`, `1h30m` or whole seconds.\n\n")
	b.WriteString("| variable | type | default | meaning | example |\n|---|---|---|---|---|\n")
	for _, v := range kiboVariables() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", v.Name, v.kind(), v.Default, cell(v.Doc), code(v.Example))
	}
	fmt.Fprintf(&b, "\nKeys of `kibo_commands` for each part: %s.\n", codes(Operations()))
	fmt.Fprintf(&b, "Keys of `kibo_timeouts`: the same and %s.\n", codes(Waits()))
	b.WriteString("\n## Ansible's connection variables\n\n")
	b.WriteString("Honoured: used as Ansible uses them. Refused: an error unless it has the value shown. No effect: accepted, with the reason.\n")
	b.WriteString("Two spellings of one variable with different values are refused.\n\n")
	b.WriteString("| variable | other spellings | here | type | default or accepted | meaning |\n|---|---|---|---|---|---|\n")
	for _, v := range loginVariables() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", v.Name, codes(v.Others), v.Standing, v.kind(), v.Default, cell(v.Doc))
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
