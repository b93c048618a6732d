// Package conformance is what every host of a fleet must answer to the commands that an upgrade sends: the simulated
// ones and real Debian alike. One table for both keeps the simulation honest.
package conformance

import (
	"context"
	"regexp"
	"strings"
	"testing"
)

// Output is how a command ended.
type Output struct {
	Stdout, Stderr string
	Exit           int
}

// Fleet is a fleet under test, freshly installed with version From and kibo-agent, no window open.
type Fleet struct {
	// Exec runs argv on a host as the login user, with a standard input that ends after stdin.
	Exec func(ctx context.Context, host string, argv []string, stdin string) (Output, error)
	// Ctrl, Node and GW are the names of hosts that run the part.
	Ctrl, Node, GW string
	// NodeName is what ctrl calls the node.
	NodeName string
	// From and To are versions of one line; Debs are the target's package files by part (ctrl, node, gw).
	From, To string
	Debs     map[string][]byte
	// Instances is how many VMs the node has.
	Instances int
}

// sudo is how root's commands are sent.
func sudo(argv ...string) []string { return append([]string{"sudo", "-n", "--"}, argv...) }

// step is one command and what must come of it.
type step struct {
	name  string
	on    string // "ctrl", "node", "gw"
	argv  []string
	stdin string
	exit  int
	also  int    // another exit status that some Debian gives; 0: none
	out   string // regular expression for all of standard output; empty: not looked at
	err   string // the same for standard error
}

func (f Fleet) host(on string) string {
	switch on {
	case "ctrl":
		return f.Ctrl
	case "gw":
		return f.GW
	}
	return f.Node
}

// run sends one command and demands the outcome.
func (f Fleet) run(t *testing.T, s step) string {
	t.Helper()
	out, err := f.Exec(t.Context(), f.host(s.on), s.argv, s.stdin)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.on, strings.Join(s.argv, " "), err)
	}
	if out.Exit != s.exit && (s.also == 0 || out.Exit != s.also) {
		t.Errorf("%s: %s: exit %d, want %d\n%s%s", s.on, strings.Join(s.argv, " "), out.Exit, s.exit, out.Stdout, out.Stderr)
	}
	for _, m := range []struct{ pattern, got, stream string }{{s.out, out.Stdout, "stdout"}, {s.err, out.Stderr, "stderr"}} {
		if m.pattern == "" {
			continue
		}
		if ok, err := regexp.MatchString(`(?s)^(?:`+m.pattern+`)$`, m.got); err != nil || !ok {
			t.Errorf("%s: %s: %s is\n%q, want\n%q (%v)", s.on, strings.Join(s.argv, " "), m.stream, m.got, m.pattern, err)
		}
	}
	return out.Stdout
}

// Run runs the whole suite. Its last part upgrades ctrl and one node for good.
func Run(t *testing.T, f Fleet) {
	t.Helper()
	for _, table := range []struct {
		name  string
		steps []step
	}{{"facts", f.facts()}, {"files", files()}, {"staging", f.staging()}, {"journal", journal()}, {"gate", f.gate()}} {
		t.Run(table.name, func(t *testing.T) {
			for _, s := range table.steps {
				t.Run(s.name, func(t *testing.T) { f.run(t, s) })
			}
		})
	}
	t.Run("upgrade", f.upgrade)
}
