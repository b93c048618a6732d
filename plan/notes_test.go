package plan

import (
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// TestNotes: what cannot be undone and what stays as somebody left it is said before the first node.
// proves K32
// proves K33
func TestNotes(t *testing.T) {
	in := usual()
	if got := notes(in); len(got) != 0 {
		t.Errorf("notes of a plain upgrade: %q", got)
	}
	in.Migrate = true
	in.Target.Debs[1].Runtime = "new"
	in.Hosts[1].Facts.Parts[0].Runtime = checks.Known("old")
	in.Hosts[2].Facts.Parts[0].Runtime = checks.Known("new")
	in.Nodes = checks.Known([]checks.NodeRow{{Name: "h2", State: "READY"}, {Name: "h3", State: "DRAINED"}, {Name: "other", State: "DRAINED"}})
	in.Hosts[3].Host.Kibo.Gate, in.Hosts[3].Host.Kibo.OffReason = "off", "lab"
	in.Done = map[string]bool{"h5": true}
	got := strings.Join(notes(in), "\n")
	for _, want := range []string{"migrated", "runtime changes on h2:", "left drained afterwards: h3 (K35)", "already: h5", "GATE IS OFF on h4 (lab)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no note says %q:\n%s", want, got)
		}
	}
	if in.Target.Debs[1].Part != release.Node {
		t.Fatal("the test's target has its debs in another order")
	}
}
