// Package docs has no code: its tests write the pages that are made from tables, and fail when a page says something else.
package docs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/plan"
)

var update = flag.Bool("update", false, "write the pages anew")

// page compares a generated page with the file, or writes it.
func page(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the code says (make docs writes it anew):\n%s", file, diff)
	}
}

// row writes one line of a Markdown table.
func row(b *bytes.Buffer, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func TestSteps(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# The steps of a rolling upgrade\n\nMade from the step table in `plan/` by `make docs`. " +
		"*reads* looks only, *stages* writes in the staging directory,\n*changes* changes the host, *disrupts* stops or starts a service. " +
		"Rows that do not apply to a host are left out of its plan.\n\n")
	row(&b, "where", "step", "effect", "complete when", "rules")
	row(&b, "---", "---", "---", "---", "---")
	for _, r := range plan.Tables(plan.Rolling) {
		row(&b, r.Block, r.Title, string(r.Effect), r.Complete, r.Rule)
	}
	page(t, "steps.md", b.Bytes())
}

func TestInventory(t *testing.T) { page(t, "inventory.md", []byte(inventory.Markdown())) }

// Every relative link in the documents leads to a file that is there.
func TestLinks(t *testing.T) {
	for _, file := range []string{"../README.md", "../README.zh-CN.md", "../ARCHITECTURE.md", "gate.md", "inventory.md", "../examples/README.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			if link == "" || strings.HasPrefix(link, "#") || strings.Contains(link, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), link)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
