//go:build ansible

package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With -update the stored ansible.json of every tree is written anew.
var update = flag.Bool("update-ansible", false, "write testdata/trees/*/ansible.json")

// More inventories to compare, named by whoever runs the test.
var others = flag.String("inventory", "", "inventories separated by spaces")

// Every inventory under testdata is given to ansible-inventory and to us. Either hosts, groups and variables are equal,
// or ours refuses with a named reason. Needs ansible-core; make test-inventory runs it.
func TestAgainstAnsible(t *testing.T) {
	equal, refused := 0, 0
	config, err := filepath.Abs("testdata/ansible.cfg") // an empty one, so that no other is found
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANSIBLE_CONFIG", config)
	for _, dir := range folders(t, "testdata/trees") {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			sources, extra := arguments(t, "args")
			want := ansibleList(t, sources, extra)
			if *update {
				if err := os.WriteFile("ansible.json", want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if compare(t, sources, extra, want) {
				equal++
			} else {
				t.Error("a tree must not be refused")
			}
		})
	}
	more := strings.Fields(*others)
	for _, f := range more {
		if _, err := os.Stat(f); err != nil {
			t.Fatal(err) // Ansible would take it for an empty inventory
		}
	}
	for _, f := range append(files(t), more...) {
		t.Run(f, func(t *testing.T) {
			if compare(t, []string{f}, nil, ansibleList(t, []string{f}, nil)) {
				equal++
			} else {
				refused++
			}
		})
	}
	t.Logf("inventories: %d equal Ansible's, %d refused with a named reason", equal, refused)
}

// files lists the inventories that are one file.
func files(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"testdata/cases/*/*", "testdata/*.yml", "../examples/*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range found {
			if !strings.HasSuffix(f, ".ansible.json") && !strings.HasSuffix(f, ".txt") {
				out = append(out, f)
			}
		}
	}
	return out
}

// compare reports whether ours accepted; a difference fails the test.
func compare(t *testing.T, sources, extra []string, want []byte) bool {
	t.Helper()
	inv, err := Load(sources, Options{ExtraVars: extra, Run: RunProgram(t.Context())})
	if err != nil {
		var problems Problems
		if !errors.As(err, &problems) {
			t.Fatalf("refused without a place: %v", err)
		}
		for _, p := range problems {
			if p.File == "" || p.What == "" {
				t.Errorf("refused without a name or a reason: %+v", p)
			}
		}
		t.Logf("refused: %v", err)
		return false
	}
	got, err := inv.List(true)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(decoded(t, want), decoded(t, got)); d != "" {
		t.Errorf("not as ansible-inventory has it (-ansible +ours):\n%s", d)
	}
	return true
}

func ansibleList(t *testing.T, sources, extra []string) []byte {
	t.Helper()
	args := []string{"--list"}
	for _, s := range sources {
		args = append(args, "-i", s)
	}
	for _, e := range extra {
		args = append(args, "-e", e)
	}
	cmd := exec.CommandContext(t.Context(), "ansible-inventory", args...)
	cmd.Env = append(os.Environ(), "ANSIBLE_LOCALHOST_WARNING=False", "LC_ALL=C.UTF-8")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("ansible-inventory: %v\n%s", err, errOut.String())
	}
	return out.Bytes()
}

// Every selection of limit_test.go is given to ansible too.
func TestLimitsAgainstAnsible(t *testing.T) {
	config, err := filepath.Abs("testdata/ansible.cfg")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANSIBLE_CONFIG", config)
	inv := load(t, "testdata/limits.yml")
	chosen := map[string][]string{}
	for _, limit := range limits() {
		cmd := exec.CommandContext(t.Context(), "ansible", "-i", "testdata/limits.yml", "all", "--limit", limit, "--list-hosts")
		out, err := cmd.Output()
		var want []string
		for _, line := range strings.Split(string(out), "\n")[1:] {
			if line = strings.TrimSpace(line); err == nil && line != "" {
				want = append(want, line)
			}
		}
		chosen[limit] = want
		got, ours := selected(inv, limit)
		if len(want) == 0 {
			if ours == nil {
				t.Errorf("%q: ansible chose nobody, ours %v", limit, got)
			}
			continue
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-ansible +ours): %v\n%s", limit, ours, d)
		}
	}
	if !*update {
		return
	}
	data, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/limits.json", append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
