package inventory

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var golden = flag.Bool("golden", false, "write the golden files of the documentation anew")

func TestMarkdown(t *testing.T) { checkGolden(t, "testdata/variables.md", []byte(Markdown())) }

func TestSchema(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "testdata/inventory.schema.json", got)
	var doc map[string]any
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
}

func checkGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *golden {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is not what the table says; run go test ./inventory -golden\n%s", path, d)
	}
}

// The table is whole: every row has a name of its own, a type, a default and a meaning, and everything but what has no
// effect is read.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variables() {
		for _, n := range v.spellings() {
			if seen[n] {
				t.Errorf("%s is in the table twice", n)
			}
			seen[n] = true
		}
		if v.Kind == "" || v.Standing == "" || v.Doc == "" || v.Default == "" {
			t.Errorf("%s: kind %q, standing %q, doc %q, default %q", v.Name, v.Kind, v.Standing, v.Doc, v.Default)
		}
		if (v.set == nil) != (v.Standing == NoEffect) {
			t.Errorf("%s: %s, but set is there: %v", v.Name, v.Standing, v.set != nil)
		}
		if strings.HasPrefix(v.Name, "kibo_") && v.Example == "" {
			t.Errorf("%s has no example", v.Name)
		}
		if v.Kind == Mapping && v.schema == nil {
			t.Errorf("%s has no schema", v.Name)
		}
	}
	// INTERFACES names these; none may be ignored in silence.
	for _, n := range strings.Fields(`ansible_host ansible_port ansible_user ansible_ssh_private_key_file ansible_private_key_file
		ansible_ssh_common_args ansible_ssh_extra_args ansible_ssh_executable ansible_ssh_timeout ansible_host_key_checking
		ansible_ssh_host_key_checking ansible_ssh_retries ansible_connection ansible_become ansible_become_user ansible_become_method
		ansible_become_password ansible_become_exe ansible_become_flags ansible_password ansible_control_path ansible_remote_tmp`) {
		if !seen[n] {
			t.Errorf("%s is not in the table", n)
		}
	}
}

// Every example in the table is itself accepted.
func TestExamples(t *testing.T) {
	for _, v := range Variables() {
		if v.Example == "" || v.Name == "kibo_cli_on" {
			continue
		}
		text := "kibo_node:\n  hosts:\n    node-a:\n      " + v.Name + ": " + v.Example + "\n"
		if _, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)}); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
