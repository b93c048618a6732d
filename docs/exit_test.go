package docs

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kibotos/kibo-rollout/internal/cli"
)

// The exit codes that the two READMEs list are those that the program's help lists, and the English words too.
func TestExitCodes(t *testing.T) {
	var help bytes.Buffer
	world := cli.World{Out: &help, Err: &help, Env: func(string) string { return "" }}
	if code := cli.Main(context.Background(), world, []string{"--help"}); code != 0 {
		t.Fatalf("help ended with %d: %s", code, help.String())
	}
	want := rows(help.String(), `(?m)^ +(\d+)  (.+)$`)
	if len(want) == 0 {
		t.Fatalf("no exit codes in the help: %s", help.String())
	}
	for _, file := range []string{"../README.md", "../README.zh-CN.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := rows(string(text), `(?m)^\| (\d+) \| (.+) \|$`)
		for i := range got {
			if i < len(want) && strings.Contains(file, "zh-CN") {
				got[i][1] = want[i][1]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", file, diff)
		}
	}
}

// rows finds pairs of a code and its meaning.
func rows(text, pattern string) [][2]string {
	var out [][2]string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		out = append(out, [2]string{m[1], m[2]})
	}
	return out
}
