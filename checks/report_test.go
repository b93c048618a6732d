package checks

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// A case of reports is a txtar file: sections "NAME PART preview|stopped EXIT [cut]" are reports, "NAME:" how they are read.
// The cases prove K20 K22 K23 K27 K28 K29.
func TestParseReport(t *testing.T) {
	for _, name := range cases(t, "reports") {
		a := readCase(t, name)
		for i := 0; i < len(a.Files); i++ {
			f := a.Files[i]
			word := strings.Fields(f.Name)
			if len(word) < 4 {
				continue
			}
			t.Run(filepath.Base(name)+"/"+word[0], func(t *testing.T) {
				exit, err := strconv.Atoi(word[3])
				if err != nil {
					t.Fatal(err)
				}
				out, stderr, _ := strings.Cut(string(f.Data), "STDERR\n")
				r := ParseReport(release.Part(word[1]), word[2] == "preview", command.Result{
					Stdout: []byte(out), Stderr: []byte(stderr), Exit: exit, Truncated: len(word) > 4,
				})
				golden(t, name, a, word[0]+":", showReport(r))
				if r.Exit != 0 && !r.Preview && !r.Blocked() {
					t.Error("passes after the stop though the exit status is not 0")
				}
			})
		}
	}
}

func showReport(r Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "blocked %v, readable %v, migration due %v\n", r.Blocked(), r.Readable(), r.MigrationDue)
	for _, u := range r.Unfinished {
		fmt.Fprintf(&b, "unfinished: %s\n", u)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Check, f.Level, f.Text)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "    next: %s\n", f.Remedy)
		}
	}
	return b.String()
}

func FuzzParseReport(f *testing.F) {
	for _, name := range cases(f, "reports") {
		for _, file := range readCase(f, name).Files {
			f.Add(0, true, file.Data)
			f.Add(1, false, file.Data)
			f.Add(1, true, file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, exit int, preview bool, out []byte) {
		for _, p := range release.Parts() {
			r := ParseReport(p, preview, command.Result{Exit: exit, Stdout: out})
			switch {
			case exit != 0 && !r.Blocked() && !(preview && p == release.Ctrl && len(r.Unfinished) > 0 && r.Readable()):
				t.Errorf("%s passes with exit status %d: %q", p, exit, out)
			case exit == 0 && !r.Blocked() && r.listed > 0:
				t.Errorf("%s passes with blockers listed: %q", p, out)
			}
			for _, found := range r.Findings {
				if suspicious(found.Text) || strings.ContainsAny(found.Text, "\n\r\t") {
					t.Errorf("unsafe text: %q", found.Text)
				}
			}
		}
	})
}
