// Package examples has no code: its tests run the examples, so that they keep working.
package examples

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
)

func TestInventory(t *testing.T) {
	inv, err := inventory.Load([]string{"inventory.yml"}, inventory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range inv.Warnings() {
		t.Errorf("warning: %v", w)
	}
	got := map[string][]release.Part{}
	for _, h := range inv.Hosts() {
		got[h.Name] = h.Parts
	}
	want := map[string][]release.Part{
		"ctrl1":  {release.Ctrl},
		"node-a": {release.Node}, "node-b": {release.Node}, "node-c": {release.Node},
		"edge1": {release.E2B, release.GW},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
