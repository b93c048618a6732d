package view

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for name, c := range map[string]struct{ in, safe, line string }{
		"plain":           {"node-a 节点 é", "node-a 节点 é", "node-a 节点 é"},
		"newline and tab": {"a\n\tb\n", "a\n\tb\n", `a\n\tb`},
		"CR LF":           {"a\r\nb\r\n", "a\nb\n", `a\r\nb`},
		"progress by CR":  {"10%\r20%", `10%\r20%`, `10%\r20%`},
		"clear screen":    {"\x1b[2J\x1b[H", `\x1b[2J\x1b[H`, `\x1b[2J\x1b[H`},
		"NUL and DEL":     {"a\x00b\x7f", `a\x00b\x7f`, `a\x00b\x7f`},
		"C1 as UTF-8":     {"a\u009bb", `a\x9bb`, `a\x9bb`},
		"C1 as a byte":    {"a\x9bb", `a\x9bb`, `a\x9bb`},
		"bidi override":   {"\u202etxet\u2066", `\u202etxet\u2066`, `\u202etxet\u2066`},
		"zero width":      {"a\u200bb\ufeff\u3164", `a\u200bb\ufeff\u3164`, `a\u200bb\ufeff\u3164`},
		"no-break space":  {"a\u00a0b", `a\xa0b`, `a\xa0b`},
		"tag characters":  {"\U000e0041", `\U000e0041`, `\U000e0041`},
		"line separator":  {"a\u2028b", `a\u2028b`, `a\u2028b`},
		"cut in a rune":   {strings.Repeat("节", safeBound), "", ""},
		"empty":           {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Safe(c.in)
			if len(c.in) > safeBound {
				if !strings.HasSuffix(got, "more bytes)") || strings.Contains(got, `\x`) {
					t.Errorf("long text ends in %q", got[len(got)-40:])
				}
				return
			}
			if got != c.safe {
				t.Errorf("Safe %q, want %q", got, c.safe)
			}
			if got := Line(c.in); got != c.line {
				t.Errorf("Line %q, want %q", got, c.line)
			}
		})
	}
}

// A machine that sends terminal controls in its output rewrites nothing on the operator's screen.
func TestSafeRemoteOutput(t *testing.T) {
	in, err := os.ReadFile("testdata/out-ansi.bin")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "out-ansi", []byte(Safe(string(in))))
}

func FuzzSafe(f *testing.F) {
	f.Add("a\x1b]0;t\x07\r\n\u202e\x9b")
	f.Add("节点\u0301\U000e0041\r")
	f.Fuzz(func(t *testing.T, in string) {
		for _, got := range []string{Safe(in), Line(in)} {
			if !utf8.ValidString(got) {
				t.Errorf("not UTF-8: %q", got)
			}
			for _, r := range got {
				if r != '\n' && r != '\t' && !shows(r) {
					t.Errorf("%q came through: %q", r, got)
				}
			}
			if len(in) <= lineBound && Safe(got) != got {
				t.Errorf("not stable: %q", got)
			}
		}
		if strings.ContainsAny(Line(in), "\n\t") {
			t.Errorf("more than a line: %q", Line(in))
		}
	})
}
