package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/kibotos/kibo-rollout/remote/command"
)

const nonce = "k1b0f00dk1b0f00dk1b0f00dk1b0f00d"

// shell runs a script that arrives on standard input.
type shell func(t *testing.T, script []byte) (stdout, stderr []byte)

// shells are those of this machine and the one that needs none.
func shells() map[string]shell {
	all := map[string]shell{"mvdan.cc/sh": interpreted}
	for name, argv := range map[string][]string{
		"sh": {"sh", "-s"}, "dash": {"dash", "-s"}, "bash": {"bash", "-s"},
		"bash --posix": {"bash", "--posix", "-s"}, "busybox": {"busybox", "sh", "-s"},
	} {
		if path, err := exec.LookPath(argv[0]); err == nil {
			all[name] = native(path, argv[1:])
		}
	}
	return all
}

func native(path string, args []string) shell {
	return func(t *testing.T, script []byte) ([]byte, []byte) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), path, args...)
		c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(script), &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, stderr.Bytes())
		}
		return stdout.Bytes(), stderr.Bytes()
	}
}

func interpreted(t *testing.T, script []byte) ([]byte, []byte) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	file, err := syntax.NewParser().Parse(bytes.NewReader(script), "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := interp.New(interp.StdIO(nil, &stdout, &stderr), interp.OpenHandler(interp.DefaultOpenHandler()))
	if err != nil {
		t.Fatal(err)
	}
	var status interp.ExitStatus
	if err := r.Run(context.Background(), file); err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return stdout.Bytes(), stderr.Bytes()
}

func everyByte() []byte {
	all := make([]byte, 0, 512)
	for i := range 256 {
		all = append(all, byte(i))
	}
	return append(all, "'; exit 9\n%s%d\\0\n$(id) `id` EOF"...)
}

// proves that output, errors, exit status and input are kept apart in every shell that scripts may meet
func TestScriptInEveryShell(t *testing.T) {
	fixed := func(script string, args ...string) []string {
		return append([]string{"sh", "-c", script, "sh"}, args...)
	}
	batch := command.Batch{Commands: []command.Command{
		{Argv: []string{"true"}},
		{Argv: fixed(`printf out; printf err >&2; exit 7`)},
		{Argv: []string{"cat"}, Stdin: everyByte()},
		{Argv: []string{"cat"}}, // no input: must not read the rest of the script
		{Argv: fixed(`printf "%s|" "$@"`, "a b", "", "it's", `$HOME`, `\n`, "*", "ü")},
		{Argv: []string{"no-such-program-here"}},
		{Argv: fixed(`kill -9 $$`)},
		{Argv: fixed(`printf '\n\n'`)},
		{Argv: fixed(`printf %s "$LC_ALL"`)},
		{Argv: []string{"true"}, Stdin: []byte(strings.Repeat("nobody reads this\n", 20000))},
	}}
	want := []struct {
		out, err string
		exit     int
	}{
		{"", "", 0}, {"out", "err", 7}, {string(everyByte()), "", 0}, {"", "", 0},
		{`a b||it's|$HOME|\n|*|ü|`, "", 0}, {"", "*", 127}, {"", "*", 137}, {"\n\n", "", 0}, {"C", "", 0}, {"", "", 0},
	}
	for name, run := range shells() {
		t.Run(name, func(t *testing.T) {
			stdout, stderr := run(t, batch.Script(nonce))
			got, err := command.ParseBatch(nonce, len(batch.Commands), stdout, stderr)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%d results, error %v\n%s\n%s", len(got), err, stdout, stderr)
			}
			for i, w := range want {
				g := got[i]
				if string(g.Stdout) != w.out || g.Exit != w.exit || w.err != "*" && string(g.Stderr) != w.err {
					t.Errorf("%s\n got %q %q %d\nwant %q %q %d", batch.Commands[i],
						g.Stdout, g.Stderr, g.Exit, w.out, w.err, w.exit)
				}
			}
		})
	}
}

// proves that nothing runs after a failure when the batch says so
func TestStopOnFailure(t *testing.T) {
	mark := t.TempDir() + "/ran"
	batch := command.Batch{StopOnFailure: true, Commands: []command.Command{
		{Argv: []string{"true"}}, {Argv: []string{"false"}}, {Argv: []string{"touch", mark}},
	}}
	for name, run := range shells() {
		t.Run(name, func(t *testing.T) {
			stdout, stderr := run(t, batch.Script(nonce))
			got, err := command.ParseBatch(nonce, 3, stdout, stderr)
			if err != nil || len(got) != 2 || got[0].Exit != 0 || got[1].Exit != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("a command ran after the failed one")
			}
		})
	}
}

// proves that a held command gets standard input that is sent after its begin frame
func TestHeldScript(t *testing.T) {
	script := command.Command{Argv: []string{"sh", "-c", `echo "held $1"; cat`, "sh", "x y"}}.HeldScript(nonce, false)
	if n := bytes.Count(script[bytes.Index(script, []byte("f b 0")):], []byte("\n")); n != 1 {
		t.Errorf("%d lines after the begin frame, want the whole command on its line", n)
	}
	for name, run := range shells() {
		if name == "mvdan.cc/sh" {
			continue // given a parsed file here, it has no stream to read on from
		}
		stdout, _ := run(t, script)
		if !strings.HasSuffix(string(stdout), "\n"+nonce+" b 0\nheld x y\n") {
			t.Errorf("%s: got %q", name, stdout)
		}
	}
}

func TestString(t *testing.T) {
	for _, c := range []struct {
		cmd      command.Command
		want     string
		elevated string
	}{
		{command.Command{Argv: []string{"id", "-u"}}, "id -u", `sudo -n -u "$SUDO_USER" -- id -u`},
		{command.Command{Argv: []string{"rm", "-rf", "--", "/a b"}, As: command.Root}, "sudo -n -- rm -rf -- '/a b'", "rm -rf -- '/a b'"},
		{
			command.Command{Argv: []string{"env", "A=$(id)"}, As: "kibotos-ctrl"},
			"sudo -n -u kibotos-ctrl -- env 'A=$(id)'", "sudo -n -u kibotos-ctrl -- env 'A=$(id)'",
		},
	} {
		if got := c.cmd.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		b := command.Batch{Commands: []command.Command{c.cmd}}
		if s := string(b.Script(nonce)); !strings.Contains(s, "\n"+c.want+" </dev/null\n") {
			t.Errorf("what is shown is not what is run:\n%s", s)
		}
		if s := string(b.ElevatedScript(nonce)); !strings.Contains(s, "\n"+c.elevated+" </dev/null\n") {
			t.Errorf("no %s in\n%s", c.elevated, s)
		}
	}
}
