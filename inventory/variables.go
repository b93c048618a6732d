package inventory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Kind is the type of a variable.
type Kind string

// The kinds. Their JSON Schema is in schema.go, their readers are in item.go.
const (
	Text     Kind = "text"
	Path     Kind = "absolute path"
	Number   Kind = "number"
	Boolean  Kind = "yes or no"
	Duration Kind = "duration"
	Command  Kind = "command"
	PartList Kind = "list of parts"
	Choice   Kind = "choice"
	Mapping  Kind = "mapping"
)

// Standing says what becomes of a variable.
type Standing string

// Standings. No connection variable is ignored in silence: each has one of these, and the documentation shows it.
const (
	Honoured Standing = "honoured"
	NoEffect Standing = "no effect" // harmless here, for the reason in Doc
	Refused  Standing = "refused"   // unless it has its default value
)

// Variable is one row of the table of variables: the only place that says what a variable is, how it is read,
// and how it is documented.
type Variable struct {
	Name    string
	Others  []string // other spellings, as Ansible has them
	Kind    Kind
	Values  []string // of a Choice
	Default string   // in words
	Doc     string   // one or two sentences
	Example string   // as in YAML
	Secret  bool     // never shown
	// NotBuilt lists values that are understood and that nothing honours yet; "*" is any but the default. A value in use is
	// refused before connecting, see Inventory.Refused. What builds it takes this field out of the row.
	NotBuilt []string
	Standing Standing
	schema   func() map[string]any // of a Mapping
	set      func(b *binding, i item)
}

func (v Variable) spellings() []string { return append([]string{v.Name}, v.Others...) }

// Variables is the whole table: our own variables first, then Ansible's connection variables.
func Variables() []Variable {
	table := append(kiboVariables(), loginVariables()...)
	for i, v := range table {
		switch {
		case len(v.NotBuilt) == 0:
		case v.anyNotBuilt():
			table[i].Doc += " Not built yet, so a value is refused before connecting."
		default:
			table[i].Doc += fmt.Sprintf(" Not built yet, so refused before connecting: %s.", codes(v.NotBuilt))
		}
	}
	return table
}

// Known finds a variable of the table by any of its spellings.
func Known(name string) (Variable, bool) {
	table := Variables()
	i := slices.IndexFunc(table, func(v Variable) bool { return slices.Contains(v.spellings(), name) })
	if i < 0 {
		return Variable{}, false
	}
	return table[i], true
}

func (v Variable) anyNotBuilt() bool { return slices.Contains(v.NotBuilt, "*") }

// notBuilt reports whether nothing honours this value.
func (v Variable) notBuilt(value any) bool {
	s := fmt.Sprint(value)
	if s == strings.Trim(v.Default, "`") {
		return false
	}
	return v.anyNotBuilt() || slices.Contains(v.NotBuilt, s)
}

// Operations are the keys that kibo_commands takes for each part.
func Operations() []string {
	return []string{"stop", "start", "reset-failed", "version", "preview", "check", "maintenance", "install", "migrate", "health", "verify"}
}

// Waits are the keys that kibo_timeouts takes besides the operations.
func Waits() []string {
	return []string{"stage", "agent", "allow", "close", "drain", "cancel-drain", "settle", "ready", "held"}
}

// commandsNotBuilt are the operations whose command nothing runs yet, and waitsNotBuilt the names whose time limit nothing keeps yet.
func commandsNotBuilt() []string { return []string{"reset-failed", "maintenance", "health", "verify"} }

func waitsNotBuilt() []string {
	return []string{"reset-failed", "version", "maintenance", "health", "allow"}
}

// Names of variables, and words in them, whose values are never shown.
var secretWord = regexp.MustCompile(`(?i)pass|secret|token|api_?key|credential`)

// holdsSecret reports whether a line or a variable's name is one that holds a secret.
func holdsSecret(s string) bool { return secretWord.MatchString(s) }

// Secret reports whether the value of a variable must not be shown.
func Secret(name string) bool { return holdsSecret(name) }

// bind fills in defaults, then everything that the inventory says.
func (b *binding) bind(table []Variable) {
	b.host.Login = Login{Address: b.host.Name}
	b.host.Kibo = Kibo{
		NodeName: b.host.Name, CLI: []string{"kibo"}, CLIOn: "ctrl",
		StageDir: "/var/lib/kibo-rollout/stage", StateDir: "/var/lib/kibo-rollout",
		Config: map[release.Part]string{}, Gate: "managed", WindowMax: defaultWindow, VMMUnits: "kibotos-vmm-*.service",
		FleetLockGroup: "default",
	}
	for _, p := range release.Parts() {
		b.host.Kibo.Config[p] = p.Config()
	}
	for _, v := range table {
		if i, ok := b.pick(v); ok && b.usable(i) {
			v.set(b, i)
			if v.notBuilt(i.value) {
				b.later.add(i.at, notBuiltText(v, i), "take it out", b.host.Name)
			}
		}
	}
	if k := b.host.Kibo; k.Gate == "off" && k.OffReason == "" {
		b.fail(b.items["kibo_gate"], "switching the gate off needs a reason", `add kibo_gate_reason: "why"`)
	}
}

// must refuses no where only yes can be honoured, before connecting.
func (b *binding) must(i item, yes bool, why, next string) {
	if !yes {
		b.later.add(i.at, i.name+" is no, but "+why, next, b.host.Name)
	}
}

// unless refuses a key that nothing honours yet, before connecting.
func (b *binding) unless(notBuilt []string, key string, i item) {
	if slices.Contains(notBuilt, key) {
		b.later.add(i.at, i.name+" is not built yet, and what is set is never ignored in silence", "take it out", b.host.Name)
	}
}

func notBuiltText(v Variable, i item) string {
	what := i.name
	if !v.anyNotBuilt() {
		what += fmt.Sprintf(": %v", i.value)
	}
	return what + " is not built yet, and what is set is never ignored in silence"
}

// pick finds the value of a variable among its spellings. When two spellings differ Ansible lets the older one win,
// which few expect: the wrong machine is one slip away, so that is refused.
func (b *binding) pick(v Variable) (item, bool) {
	var found []item
	for _, n := range v.spellings() {
		if i, ok := b.items[n]; ok {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return item{}, false
	}
	if v.set == nil {
		return item{}, false
	}
	for _, other := range found[1:] {
		if !sameValue(found[0].value, other.value) {
			b.c.add(other.at, other.name+" and "+found[0].name+" differ, and they are two spellings of one variable",
				"keep one; Ansible would take "+found[len(found)-1].name, b.host.Name)
			return item{}, false
		}
	}
	return found[0], true
}

// usable refuses values that are not there yet: encrypted ones and templates.
func (b *binding) usable(i item) bool {
	switch {
	case hasVault(i.value):
		b.fail(i, "this value is encrypted with Ansible Vault, which is not read here",
			"give it another way (for a password: -K or --become-password-file; for the rest: -e "+i.name+"=VALUE)")
		return false
	case isTemplate(i.node):
		b.fail(i, "this value is a template, and templates are not evaluated here",
			"write the value itself, or give it with -e "+i.name+"=VALUE; braces that are meant literally need the tag !unsafe")
		return false
	}
	return true
}

func hasVault(v any) bool {
	switch t := v.(type) {
	case []any:
		for _, e := range t {
			if hasVault(e) {
				return true
			}
		}
	case map[string]any:
		if isVault(v) {
			return true
		}
		for _, e := range t {
			if hasVault(e) {
				return true
			}
		}
	}
	return false
}
