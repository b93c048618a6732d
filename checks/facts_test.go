package checks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

var update = flag.Bool("update", false, "write the golden parts of the test cases anew")

// A case of facts is a txtar file. Its comment says what is wanted ("parts node", "stage DIR"); each section "FACT[/PART] [exit=N]
// [cut]" is what the command of that fact prints, "FACT[/PART] stderr" its standard error; what is left out comes from
// base.txtar. The last section "facts" is what is to be known afterwards, without what is the same as in base.txtar or was not asked.
func TestFacts(t *testing.T) {
	base := readCase(t, filepath.Join("testdata", "facts", "base.txtar"))
	healthy := showFacts(ParseFacts(wantOf(base), results(t, wantOf(base), base)))
	for _, name := range cases(t, "facts") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c := readCase(t, name)
			w := wantOf(c)
			got := showFacts(ParseFacts(w, results(t, w, base, c)))
			if filepath.Base(name) != "base.txtar" {
				got = lessThan(got, healthy)
			}
			golden(t, name, c, "facts", got)
		})
	}
}

// lessThan drops the lines that are in base, and those on facts that nobody asked for.
func lessThan(got, base string) string {
	var b strings.Builder
	known := strings.Split(base, "\n")
	for line := range strings.Lines(got) {
		if !slices.Contains(known, strings.TrimSuffix(line, "\n")) && !strings.HasSuffix(line, ErrNotGathered.Error()+"\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func cases(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	return names
}

func readCase(t testing.TB, name string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// golden compares with, or with -update writes, a section of a case.
func golden(t *testing.T, name string, a *txtar.Archive, section, got string) {
	t.Helper()
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == section })
	if *update {
		if i < 0 {
			a.Files = append(a.Files, txtar.File{Name: section})
			i = len(a.Files) - 1
		}
		a.Files[i].Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if i < 0 {
		t.Fatalf("no section %q", section)
	}
	if d := cmp.Diff(string(a.Files[i].Data), got); d != "" {
		t.Error(d)
	}
}

func wantOf(a *txtar.Archive) Want {
	w := Want{Host: "node-a"}
	for line := range strings.Lines(string(a.Comment)) {
		switch key, rest, _ := strings.Cut(strings.TrimSpace(line), " "); key {
		case "parts":
			for p := range strings.FieldsSeq(rest) {
				w.Parts = append(w.Parts, release.Part(p))
			}
		case "stage":
			w.StageDir = rest
		}
	}
	return w
}

// results makes the answer of a host to FactsBatch out of cases; later ones win. A section that answers nothing fails.
func results(t testing.TB, w Want, from ...*txtar.Archive) []command.Result {
	t.Helper()
	var out []command.Result
	used := map[string]bool{"facts": true}
	for _, row := range factRows() {
		asks := row.asks(w)
		for i := range asks {
			name := row.fact
			if len(asks) > 1 || strings.HasPrefix(name, "Parts.") {
				name += "/" + string(partOfAsk(w, row.fact, i))
			}
			used[name] = true
			out = append(out, answer(from, name))
		}
	}
	for _, f := range from[len(from)-1].Files {
		if name, _, _ := strings.Cut(f.Name, " "); !used[name] {
			t.Errorf("section %q answers no command", f.Name)
		}
	}
	return out
}

func partOfAsk(w Want, fact string, i int) release.Part {
	if fact == "Parts.Runtime" {
		return release.Node
	}
	return w.Parts[i]
}

// answer finds the sections of one command. Without any, the program is missing.
func answer(from []*txtar.Archive, name string) command.Result {
	res := command.Result{Exit: 127}
	for _, a := range from {
		for _, f := range a.Files {
			word := strings.Fields(f.Name)
			if word[0] != name {
				continue
			}
			if slices.Contains(word[1:], "stderr") {
				res.Stderr = f.Data
				continue
			}
			res = command.Result{Stdout: f.Data, Truncated: slices.Contains(word[1:], "cut")}
			for _, w := range word[1:] {
				if n, ok := strings.CutPrefix(w, "exit="); ok {
					res.Exit, _ = strconv.Atoi(n)
				}
			}
		}
	}
	return res
}

func show[T any](b *strings.Builder, name string, f Fact[T]) {
	v, err := f.Get()
	if err != nil {
		fmt.Fprintf(b, "%s: unknown: %v\n", name, err)
		return
	}
	fmt.Fprintf(b, "%s: %+v\n", name, v)
}

func showFacts(f Facts) string {
	var b strings.Builder
	show(&b, "clock", f.Clock)
	show(&b, "boot", f.Boot)
	show(&b, "machine", f.Machine)
	show(&b, "os", f.OS)
	show(&b, "arch", f.Arch)
	show(&b, "sudo", f.Sudo)
	show(&b, "audit", f.DpkgAudit)
	show(&b, "packages", f.Packages)
	show(&b, "agent", f.Agent)
	show(&b, "disk", f.Disk)
	show(&b, "staged", f.Staged)
	show(&b, "runs", f.Runs)
	for _, p := range f.Parts {
		show(&b, string(p.Part)+" version", p.Version)
		show(&b, string(p.Part)+" revision", p.Revision)
		show(&b, string(p.Part)+" unit", p.Unit)
		show(&b, string(p.Part)+" runtime", p.Runtime)
	}
	show(&b, "vmms", f.VMMs)
	return b.String()
}
