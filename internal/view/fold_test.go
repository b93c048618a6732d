package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFold(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		width int
		want  []string
	}{
		"fits":             {"node-a is ready", 15, []string{"node-a is ready"}},
		"at spaces":        {"node-a is ready", 9, []string{"node-a is", "ready"}},
		"not at hyphens":   {"stop kibotos-node now", 14, []string{"stop", "kibotos-node", "now"}},
		"inside a word":    {"abcdefgh", 3, []string{"abc", "def", "gh"}},
		"wide characters":  {"节点甲乙", 5, []string{"节点", "甲乙"}},
		"wider than room":  {"节点", 1, []string{"节", "点"}},
		"own line breaks":  {"a\nb", 80, []string{"a", "b"}},
		"empty":            {"", 10, []string{""}},
		"spaces are kept":  {"a  b", 10, []string{"a  b"}},
		"no width at all":  {"ab cd", -5, []string{"ab", "cd"}},
		"emoji and joiner": {"👩‍🚀👩‍🚀", 2, []string{"👩‍🚀", "👩‍🚀"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, fold(c.text, c.width)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzTable(f *testing.F) {
	f.Add("node-a", "节点 0.1.2", "10.0.0.1", 20)
	f.Add("", "", "", 0)
	f.Fuzz(func(t *testing.T, a, b, c string, width int) {
		width = min(max(width, leastWidth-2), 300)
		tab := table{heads: []string{"HOST", "VERSION", "ADDRESS"}}
		tab.add(cell{text: Line(a)}, cell{text: Line(b)}, cell{text: Line(c)})
		got := tab.draw(width, Screen{}.brush())
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		for _, l := range got {
			if cells(l) > width {
				t.Errorf("%d cells in a table of %d: %q", cells(l), width, l)
			}
		}
		if all := squeeze(strings.Join(got, "")); len(all) < len(squeeze(Line(a)+Line(b)+Line(c))) {
			t.Errorf("text was lost: %q", got)
		}
	})
}
