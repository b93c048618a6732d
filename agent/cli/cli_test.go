package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

func now() time.Time { return time.Unix(1800000000, 0) }

// here runs jobs in this process, to their end, when they are started.
type here struct{ jobs *agent.Jobs }

func (h here) Start(_ context.Context, key string) error { return h.jobs.Work(key) }
func (h here) Left(string) (bool, error)                 { return false, nil }

// console is a host in a temporary directory, with what was printed.
type console struct {
	host     Host
	out, err bytes.Buffer
}

func newConsole(t *testing.T) *console {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "kibo-agent")
	jobs := agent.Jobs{Dir: dir, Now: now,
		Inhibitors: func(context.Context) ([]gate.Inhibitor, error) { return nil, nil },
		Window: agent.Window{Path: filepath.Join(dir, "allow.json"), Now: now,
			Trust: agent.Trust{Base: base, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}}
	jobs.Units = here{&jobs}
	c := &console{}
	c.host = Host{Version: "1.2.3", Stdin: strings.NewReader(""), Stdout: &c.out, Stderr: &c.err, Jobs: jobs,
		Layers: agent.Layers{Root: base, AptDump: func() (string, error) { return "", errors.New("no apt here") }},
		Guard:  agent.Guard{Jobs: jobs, Procs: agent.Procs{Root: base}, PID: 1},
		Getenv: func(string) string { return "" }, Shield: func() {}}
	return c
}

// run runs a command line and returns its exit code; the output is in c.
func (c *console) run(t *testing.T, line string) int {
	t.Helper()
	c.out.Reset()
	c.err.Reset()
	return Main(t.Context(), c.host, strings.Fields(line))
}

// A whole story on one host: every line with its exit code and what it must print.
func TestStory(t *testing.T) {
	c := newConsole(t)
	for _, step := range []struct {
		line string
		exit int
		says string
	}{
		{"version", 0, "kibo-agent 1.2.3\n"},
		{"version --json", 0, `{"name":"kibo-agent","version":"1.2.3"}` + "\n"},
		{"check", 4, "closed: there is no "},
		{"check --output json", 4, `"code":"missing"`},
		{"wait --key k --output json", 1, `"state":"unknown"`},
		{"run --key k --operation stop --output json -- true", 4, `"state":"denied"`},
		{"close", 0, "there was no window\n"},
		{"allow --for 30m --id w --operation stop --operation install --package kibotos-node=0.1.4 --issued-by ops --output json", 0, `"until":"2027-01-15T08:30:00Z"`},
		{"check", 0, "open until 2027-01-15 08:30:00 UTC, placed by ops\n"},
		{"check --operation start", 4, "closed: the window permits stop, install, not start\n"},
		{"check --operation install --package kibotos-node=0.1.4", 0, "open"},
		{"check --operation install --package kibotos-node=0.1.5", 4, "0.1.4, not 0.1.5"},
		{"run --key k --operation stop --output json -- sh -c exit", 0, `"state":"finished","exit":0`},
		{"run --key f --operation stop --output json -- false", 1, `"state":"finished","exit":1`},
		{"run --key f --operation stop -- false", 1, "job f finished with exit 1"},
		{"wait --key k", 0, "job k finished with exit 0"},
		{"status --output json", 0, `"code":"open"`},
		{"status", 0, "apt hook: NOT ACTIVE: no apt here\n"},
		{"close --id other", 0, "left another window alone"},
		{"close --id w --output json", 0, `{"closed":true,"reason":"closed"}` + "\n"},
		{"check", 4, "closed"},
		{"allow --until 1800000060 --once", 0, "open until"},
		{"allow --until 2027-01-15T10:00:00+01:00", 0, "open until 2027-01-15 09:00:00 UTC"},
	} {
		if got := c.run(t, step.line); got != step.exit || !strings.Contains(c.out.String(), step.says) {
			t.Fatalf("%s\nexit %d, want %d\nstdout %s\nstderr %s", step.line, got, step.exit, &c.out, &c.err)
		}
	}
}

// With --output json there is exactly one object on standard output.
func TestRunPrintsOneObject(t *testing.T) {
	c := newConsole(t)
	c.run(t, "allow --for 1m")
	c.run(t, "run --key k --operation stop --output json -- echo hello")
	dec := json.NewDecoder(&c.out)
	var job gate.Job
	if err := dec.Decode(&job); err != nil || job.Output != "hello\n" || job.Key != "k" || dec.More() || c.err.Len() > 0 {
		t.Errorf("%+v %v %s", job, err, &c.err)
	}
}

func TestUsage(t *testing.T) {
	c := newConsole(t)
	for line, says := range map[string]string{
		"":                        "",
		"dance":                   "no command",
		"check more":              "one word too many",
		"check --output xml":      "text or json",
		"check --operation dance": "no operation",
		"check --operation stop --operation start": "one --operation",
		"check --package x":                        "NAME=VERSION",
		"check --package ab=1 --package ab=2":      "two versions",
		"check --sha256 xyz":                       "SHA-256",
		"allow":                                    "either --for or --until",
		"allow --for 1m --until 1":                 "either --for or --until",
		"allow --for -1m":                          "no window",
		"allow --for 1ms":                          "no window",
		"allow --until 02:30":                      "neither a time",
		"allow --until 2027-01-15T10:00:00":        "neither a time",
		"run --operation stop -- true":             "no job key",
		"run --key k -- true":                      "needs an operation",
		"run --key k --operation stop":             "needs a command",
		"run --key ../k --operation stop -- true":  "no job key",
		"wait": "no job key",
	} {
		if got := c.run(t, line); got != ExitUsage || !strings.Contains(c.err.String(), says) {
			t.Errorf("%q: exit %d, stderr %s", line, got, &c.err)
		}
	}
	for _, line := range []string{"help", "--help", "run -h"} {
		if got := c.run(t, line); got != 0 || !strings.Contains(c.out.String(), "run") {
			t.Errorf("%q: exit %d, %s", line, got, &c.out)
		}
	}
	for line, says := range map[string]string{
		"allow --until 1800000000000": "milliseconds",
		"allow --until 1799999999":    "ended",
		"allow --for 337h":            "14 days",
	} {
		if got := c.run(t, line); got != ExitError || !strings.Contains(c.err.String(), says) {
			t.Errorf("%q: exit %d, stderr %s", line, got, &c.err)
		}
	}
}

// proves Z8: a hook's refusal says what, why and what to do, on standard error, and exits non-zero.
func TestHookRefusal(t *testing.T) {
	c := newConsole(t)
	c.host.Stdin = strings.NewReader("VERSION 3\n\nkibotos-node 1 all none < 2 all none /n.deb\n")
	if got := c.run(t, "apt-hook"); got != 1 || c.out.Len() > 0 {
		t.Errorf("exit %d", got)
	}
	for _, want := range []string{"refused: install kibotos-node 2", "because: there is no", "next: kibo-agent"} {
		if !strings.Contains(c.err.String(), want) {
			t.Errorf("no %q in %s", want, &c.err)
		}
	}
	c.host.Stdin = strings.NewReader("VERSION 3\n\nhello 1 all none < 2 all none /n.deb\n")
	if got := c.run(t, "apt-hook"); got != 0 || c.err.Len() > 0 {
		t.Errorf("exit %d, %s", got, &c.err)
	}
	if got := c.run(t, "dpkg-hook"); got != 0 {
		t.Errorf("exit %d, %s", got, &c.err)
	}
}

func FuzzMoment(f *testing.F) {
	for _, s := range []string{"1800000000", "2027-01-15T10:00:00+01:00", "02:30", "", "-1", "1e9", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := moment(s); err == nil && at.IsZero() && !strings.HasPrefix(s, "0001") {
			t.Errorf("%q is the zero time", s)
		}
	})
}
