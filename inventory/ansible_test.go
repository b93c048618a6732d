//go:build ansible

package inventory

import (
	"bytes"
	"encoding/json"
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

// Every inventory under testdata is given to ansible-inventory and to us. Either hosts, groups and variables are equal,
// or ours refuses with a named reason. Needs ansible-core; run with: go test -tags ansible -run Ansible -v
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
	files, err := filepath.Glob("testdata/cases/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".ansible.json") || strings.HasSuffix(f, ".txt") {
			continue
		}
		t.Run(f, func(t *testing.T) {
			if compare(t, []string{f}, nil, ansibleList(t, []string{f}, nil)) {
				equal++
			} else {
				refused++
			}
		})
	}
	t.Logf("%d inventories equal Ansible's, %d refused with a reason", equal, refused)
}

// compare reports whether ours accepted; a difference fails the test.
func compare(t *testing.T, sources, extra []string, want []byte) bool {
	t.Helper()
	inv, err := Load(sources, Options{ExtraVars: extra, Run: RunProgram(t.Context())})
	if err != nil {
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
