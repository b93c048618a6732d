package shell_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// machine has nothing but echo's cousin say, cat, sh and its disk.
type machine struct{ fs *memfs.FS }

func newMachine(t testing.TB) *machine {
	t.Helper()
	m := &machine{memfs.New(func() time.Time { return time.Unix(0, 0) })}
	if err := m.fs.MkdirAll(memfs.Cred{}, "/dir", 0o777); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) FS() *memfs.FS { return m.fs }

func (m *machine) Lookup(name string) (string, bool) { return "/bin/" + name, name == "say" }

func (m *machine) Exec(ctx context.Context, p *shell.Proc) int {
	switch p.Args[0] {
	case "say":
		p.Printf("%s\n", strings.Join(p.Args[1:], ","))
		return 0
	case "line":
		line, _ := shell.ReadLine(p.Stdin)
		p.Printf("<%s>\n", strings.TrimSuffix(line, "\n"))
		return 0
	case "sh":
		return shell.Main(ctx, m, p)
	}
	return 127
}

func (m *machine) run(ctx context.Context, stdin string, args ...string) (string, int) {
	var out strings.Builder
	p := &shell.Proc{Args: args, Dir: "/dir", Stdin: shell.NewInput(strings.NewReader(stdin)), Stdout: &out, Stderr: &out}
	code := shell.Main(ctx, m, p)
	return out.String(), code
}

func TestShell(t *testing.T) {
	for name, tc := range map[string]struct {
		args  []string
		stdin string
		out   string
		exit  int
	}{
		"text":               {args: []string{"-c", "say a  b"}, out: "a,b\n"},
		"name and words":     {args: []string{"-c", `say "$0" "$@"`, "n", "a b", ""}, out: "n,a b,\n"},
		"script":             {args: []string{"-s", "--", "x"}, stdin: "say $1\nsay 2", out: "x\n2\n"},
		"exit":               {args: []string{"-s"}, stdin: "exit 7\nsay no\n", exit: 7},
		"last status":        {args: []string{"-s"}, stdin: "false\n", exit: 1},
		"input of a program": {args: []string{"-s"}, stdin: "line\nfor the program\nsay after\n", out: "<for the program>\nafter\n"},
		"read":               {args: []string{"-s"}, stdin: "read a b\none two three\nsay $a $b\n", out: "one,two,three\n"},
		"read at the end":    {args: []string{"-c", "read a || say end"}, out: "end\n"},
		"function":           {args: []string{"-s"}, stdin: "f() {\nsay $1\n}\nf x\n", out: "x\n"},
		"here":               {args: []string{"-s"}, stdin: "line <<EOT\ninside\nEOT\nsay after\n", out: "<inside>\nafter\n"},
		"substitution":       {args: []string{"-c", `x=$(say a; sh -c 'say b'); say "$x"`}, out: "a\nb\n"},
		"redirection":        {args: []string{"-c", "say x >f; line <f; line </dev/null"}, out: "<x>\n<>\n"},
		"files":              {args: []string{"-c", "say 1 >b; say 1 >a; say *; [ -e a ] && [ ! -e c ] && say ok"}, out: "a,b\nok\n"},
		"trap":               {args: []string{"-s"}, stdin: "trap 'say bye' EXIT\nsay hi\n", out: "hi\nbye\n"},
		"command":            {args: []string{"-c", "command -v say; command -v nothing; say $?"}, out: "/bin/say\n127\n"},
		"errexit":            {args: []string{"-e", "-c", "false; say no"}, exit: 1},
		"syntax":             {args: []string{"-c", "if"}, exit: 2},
		"option":             {args: []string{"-Z"}, exit: 2},
		"pipe":               {args: []string{"-c", "say a | line"}, out: "<a>\n"},
		"real machine":       {args: []string{"-c", "[ -e /proc/self ] || say none; say /bin/*"}, out: "none\n/bin/*\n"},
	} {
		t.Run(name, func(t *testing.T) {
			out, exit := newMachine(t).run(t.Context(), tc.stdin, append([]string{"sh"}, tc.args...)...)
			if exit != tc.exit || (tc.exit != 2 && out != tc.out) {
				t.Errorf("got %q, exit %d", out, exit)
			}
		})
	}
}

func FuzzShell(f *testing.F) {
	for _, s := range []string{"say a", "f() { say; }; f", "x=$(say a)\nsay \"$x\"", "line <<E\nE\n", "read x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		newMachine(t).run(ctx, text, "sh", "-s")
	})
}
