package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// TestMain lets scripts call the program: this test binary under another name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kibo-rollout": program})
}

func program() {
	os.Exit(Main(context.Background(), World{
		Version: "1.2.3", In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: time.Now,
		Pause: func(context.Context, time.Duration) {}, Home: os.Getenv("HOME"), User: "ops@desk",
	}, os.Args[1:]))
}

var updateScripts = flag.Bool("update-scripts", false, "write what scripts compare with anew")

// Each script is one command line after the other with what must come of it. None may reach for a host: their addresses are of a
// network that is nowhere. Where ssh must not even be asked what it knows of a host, $WORK/bin has one that leaves a mark.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *updateScripts,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "untouched": untouched},
		Setup: func(e *testscript.Env) error {
			bin := filepath.Join(e.WorkDir, "bin")
			ssh := "#!/bin/sh\necho \"$@\" >>\"$WORK/ssh-was-called\"\nexit 255\n"
			if err := os.MkdirAll(bin, 0o755); err != nil {
				return err
			}
			e.Setenv("HOME", e.WorkDir)
			return os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o755)
		},
	})
}

// exits CODE COMMAND...: runs a command that must end with that code. One that fails must say so in the form `error: …`, and one that
// was called wrongly must name the next thing to type.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("ended with %d, want %d", got, want)
	}
	said := ts.ReadFile("stderr")
	if want != 0 && !hasLine(said, "error: ") {
		ts.Fatalf("no line begins with error:")
	}
	if want == exitUsage && !hasLine(said, "next: ") {
		ts.Fatalf("no line begins with next:")
	}
}

func hasLine(text, prefix string) bool { return strings.Contains("\n"+text, "\n"+prefix) }

// untouched: no ssh on the path was asked anything.
func untouched(ts *testscript.TestScript, _ bool, _ []string) {
	if data, err := os.ReadFile(ts.MkAbs("ssh-was-called")); err == nil {
		ts.Fatalf("ssh was called: %s", data)
	}
}

// Help of every command ends with the exit codes and one example to paste.
func TestHelp(t *testing.T) {
	w := World{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) string { return "" }}
	var each func(c *cobra.Command, path []string)
	each = func(c *cobra.Command, path []string) {
		for _, sub := range c.Commands() {
			if sub.Name() != "help" {
				each(sub, append(path[:len(path):len(path)], sub.Name()))
			}
		}
		out := &bytes.Buffer{}
		w := w
		w.Out = out
		if code := Main(t.Context(), w, append(path, "--help")); code != exitDone {
			t.Errorf("%v: help ended with %d", path, code)
		}
		_, end, ok := strings.Cut(out.String(), exitHelp()+"\nExample:\n")
		ok = ok && strings.Contains(end, "kibo-rollout "+strings.Join(path, " "))
		for _, line := range strings.Split(strings.TrimSuffix(end, "\n"), "\n") {
			ok = ok && strings.HasPrefix(line, "  kibo-rollout ")
		}
		if !ok {
			t.Errorf("help of %v does not end with the exit codes and one example:\n%s", path, out)
		}
	}
	each(newRoot(w), nil)
}
