package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A tree is a folder under testdata/trees: args (one a line, as for ansible-inventory), the files they name, and
// ansible.json, which is what ansible-inventory --list printed for them. See ansible_test.go, which makes it.
func TestTreesLikeAnsible(t *testing.T) {
	for _, dir := range folders(t, "testdata/trees") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Chdir(dir)
			sources, extra := arguments(t, "args")
			inv, err := Load(sources, Options{ExtraVars: extra, Run: RunProgram(t.Context())})
			if err != nil {
				t.Fatal(err)
			}
			got, err := inv.List(true)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("ansible.json")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(decoded(t, want), decoded(t, got)); d != "" {
				t.Errorf("not as ansible-inventory has it (-ansible +ours):\n%s", d)
			}
			// Byte for byte, but where keys of several types keep Ansible from sorting.
			if string(want) != string(got) && filepath.Base(dir) != "scalars" {
				t.Errorf("not the bytes of ansible-inventory (-ansible +ours):\n%s", cmp.Diff(string(want), string(got)))
			}

			// What we print is itself an inventory that means the same.
			again, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(string(got))})
			if err != nil {
				t.Fatal(err)
			}
			second, err := again.List(true)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(decoded(t, got), decoded(t, second)); d != "" {
				t.Errorf("not the same when read from standard input:\n%s", d)
			}
		})
	}
}

func folders(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(root, e.Name()))
		}
	}
	if len(out) == 0 {
		t.Fatalf("nothing in %s", root)
	}
	return out
}

// arguments reads an args file: lines of -i SOURCE and -e VARS.
func arguments(t *testing.T, path string) (sources, extra []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		flag, value, _ := strings.Cut(line, " ")
		switch flag {
		case "-i":
			sources = append(sources, value)
		case "-e":
			if value[0] != '{' && value[0] != '@' {
				value = strings.Trim(value, `"`)
			}
			extra = append(extra, value)
		default:
			t.Fatalf("%s: unknown line %q", path, line)
		}
	}
	return sources, extra
}
