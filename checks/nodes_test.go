package checks

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// A case of nodes is a txtar file with sections "NAME.out", what the list looks like, and "NAME.rows", how it is read.
func TestParseNodes(t *testing.T) {
	for _, name := range cases(t, "nodes") {
		a := readCase(t, name)
		for i := 0; i < len(a.Files); i++ {
			title, ok := strings.CutSuffix(a.Files[i].Name, ".out")
			if !ok {
				continue
			}
			t.Run(filepath.Base(name)+"/"+title, func(t *testing.T) {
				golden(t, name, a, title+".rows", showNodes(ParseNodes(a.Files[i].Data)))
			})
		}
	}
}

func showNodes(rows []NodeRow, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes\n", len(rows))
	for _, r := range rows {
		fmt.Fprintf(&b, "%+v\n", r)
	}
	return b.String()
}

func TestNodesFact(t *testing.T) {
	if _, err := NodesFact(command.Result{Exit: 1, Stderr: []byte("ctrl: connection refused\n")}).Get(); err == nil ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	cut := command.Result{Stdout: []byte("NAME STATE RELEASE\nnode-a READY 0.1.4\n"), Truncated: true}
	if _, err := NodesFact(cut).Get(); err == nil {
		t.Error("a list that was cut passes")
	}
	cut.Truncated = false
	if rows, err := NodesFact(cut).Get(); err != nil || len(rows) != 1 {
		t.Errorf("got %v, %v", rows, err)
	}
	if c := NodesCommand(nil); c.Effect != command.Reads || strings.Join(c.Argv, " ") != "kibo node list" {
		t.Errorf("got %v", c)
	}
	if c := NodesCommand([]string{"podman", "exec", "kibo"}); strings.Join(c.Argv, " ") != "podman exec kibo node list" {
		t.Errorf("got %v", c)
	}
}

func FuzzParseNodes(f *testing.F) {
	for _, name := range cases(f, "nodes") {
		for _, file := range readCase(f, name).Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		rows, err := ParseNodes(out)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, r := range rows {
			if !word(r.Name, 253) || !word(r.State, 64) || suspicious(r.Release+r.Unready) || seen[r.Name] {
				t.Errorf("accepted %+v", r)
			}
			seen[r.Name] = true
		}
	})
}
