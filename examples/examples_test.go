// Package examples has no code: its tests run the examples, so that they keep working.
package examples

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
)

var update = flag.Bool("update", false, "write generated files anew")

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

const schemaFile = "inventory.schema.json"

// The schema is what the table of variables says, and the example names it for editors.
func TestSchema(t *testing.T) {
	want, err := inventory.Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the code says (make docs writes it anew):\n%s", schemaFile, diff)
	}
	text, err := os.ReadFile("inventory.yml")
	if err != nil {
		t.Fatal(err)
	}
	if first := "# yaml-language-server: $schema=" + schemaFile + "\n"; !strings.HasPrefix(string(text), first) {
		t.Errorf("inventory.yml does not begin with %q", first)
	}
}

// What we read satisfies the schema, too: an editor must not cry over a good file.
func TestSchemaAccepts(t *testing.T) {
	schema := compiled(t)
	files := []string{"inventory.yml"}
	for _, pattern := range []string{"../inventory/testdata/trees/*/hosts.yml", "../inventory/testdata/cases/*/*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	tried := 0
	for _, f := range files {
		if _, err := inventory.Load([]string{f}, inventory.Options{}); err != nil {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tried++
		if err := schema.Validate(decoded(t, data)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	if tried < 10 {
		t.Errorf("only %d files were tried", tried)
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := compiled(t)
	for _, vars := range []string{
		"kibo_stage_dirs: /srv/x", "kibo_stage_dir: srv", "kibo_gate: open", "kibo_parts: [nodes]", "kibo_window_max: soon", "kibo_timeouts: {redy: 1m}",
		"kibo_commands: {gw: {halt: [x]}}", "kibo_config: {node: etc/x}", "ansible_port: ssh", "ansible_become_user: deploy",
	} {
		text := "kibo_node:\n  hosts:\n    node-a:\n      " + vars + "\n"
		if schema.Validate(decoded(t, []byte(text))) == nil {
			t.Errorf("%s: was accepted by the schema", vars)
		}
		if _, err := inventory.Load([]string{"-"}, inventory.Options{Stdin: strings.NewReader(text)}); err == nil {
			t.Errorf("%s: was accepted by Load", vars)
		}
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decoded is YAML as an editor's checker sees it.
func decoded(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return textKeys(v)
}

// textKeys turns the keys of every mapping into text, as JSON has them.
func textKeys(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k, e := range t {
			t[k] = textKeys(e)
		}
	case map[any]any:
		out := map[string]any{}
		for k, e := range t {
			out[fmt.Sprint(k)] = textKeys(e)
		}
		return out
	case []any:
		for i, e := range t {
			t[i] = textKeys(e)
		}
	case time.Time:
		return t.Format(time.DateOnly)
	}
	return v
}
