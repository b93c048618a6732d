//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// walkFlags are the flags of an upgrade of the lab to a release.
func walkFlags(t *testing.T, version string) []string {
	t.Helper()
	return []string{"--debs", Lab(t).Debs(version), "--to", version, "--agent-deb", AgentDeb(t)}
}

func want(t *testing.T, out lab.Output, exit int, texts ...string) {
	t.Helper()
	if out.Exit != exit {
		t.Fatalf("exit code %d, want %d\n%s%s", out.Exit, exit, out.Stdout, out.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(out.Stdout+out.Stderr, text) {
			t.Errorf("it does not say %q:\n%s%s", text, out.Stdout, out.Stderr)
		}
	}
}

func nodeHosts(t *testing.T) []lab.Host {
	t.Helper()
	return Lab(t).With(release.Node)
}

// within waits until something holds.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// allVMMs is what systemd says of every VMM: unit, main PID, start time.
func allVMMs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, h := range nodeHosts(t) {
		out[h.Name] = sortedBlocks(Exec(t, h.Name, "systemctl", "show", "-p", "Id,MainPID,ExecMainStartTimestampMonotonic", "kibotos-vmm-*.service"))
	}
	return out
}

// sortedBlocks puts what systemctl says of several units into one order: its own differs from call to call.
func sortedBlocks(text string) string {
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	slices.Sort(blocks)
	return strings.Join(blocks, "\n\n")
}

func sameVMMs(t *testing.T, before map[string]string) {
	t.Helper()
	now := allVMMs(t)
	for host, was := range before {
		if was == "" || now[host] != was {
			t.Errorf("VMMs of %s were\n%s\nand are\n%s", host, was, now[host])
		}
	}
}

// upgraded holds every host to the target and to having nothing left of the run.
func upgraded(t *testing.T, version string) {
	t.Helper()
	for _, h := range Lab(t).Hosts() {
		for _, p := range h.Parts {
			if got := Exec(t, h.Name, "dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", p.Package()); got != "installed "+version {
				t.Errorf("%s: %s is %s", h.Name, p.Package(), got)
			}
			if got := Exec(t, h.Name, "systemctl", "is-active", p.Unit()); got != "active" {
				t.Errorf("%s: %s is %s", h.Name, p.Unit(), got)
			}
		}
		if got := Exec(t, h.Name, "find", "/var/lib/kibo-rollout/stage", "-mindepth", "1"); got != "" {
			t.Errorf("%s: staging is left: %s", h.Name, got)
		}
		if got := Try(t, h.Name, "test", "-e", "/var/lib/kibo-agent/allow.json"); got.Exit == 0 {
			t.Errorf("%s: an allow-file is left", h.Name)
		}
	}
	list := Exec(t, Lab(t).With(release.Ctrl)[0].Name, "kibo", "node", "list")
	for _, h := range nodeHosts(t) {
		row := ""
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, h.NodeName+" ") {
				row = line
			}
		}
		if !strings.Contains(row, "READY") || strings.Contains(row, "NOT-READY") || !strings.Contains(row, version) {
			t.Errorf("node %s is %q", h.NodeName, row)
		}
	}
}

// TestWalk upgrades the whole lab, 0.1.2 to 0.1.4, over real sshd, apt and systemd.
// proves K11 K34 K41
func TestWalk(t *testing.T) {
	Fresh(t)
	before := allVMMs(t)
	plan := Rollout(t, append([]string{"plan", "--output", "json"}, walkFlags(t, "0.1.4")...)...)
	want(t, plan, 0)
	dec := json.NewDecoder(strings.NewReader(plan.Stdout))
	var doc struct{ ID string }
	if err := dec.Decode(&doc); err != nil || dec.More() || doc.ID == "" {
		t.Errorf("standard output is not one plan: %v", err)
	}
	for _, h := range Lab(t).Hosts() {
		if got := Try(t, h.Name, "dpkg-query", "-W", "kibo-agent"); got.Exit == 0 {
			t.Errorf("%s: planning installed something", h.Name)
		}
	}
	start := time.Now()
	want(t, Rollout(t, append([]string{"apply", "--yes"}, walkFlags(t, "0.1.4")...)...), 0, "every VMM is the same process: 6 of 6")
	t.Logf("walked in %s", time.Since(start))
	upgraded(t, "0.1.4")
	sameVMMs(t, before)

	for _, h := range Lab(t).Hosts() {
		Exec(t, h.Name, "journalctl", "--rotate")
	}
	again := Rollout(t, append([]string{"apply", "--yes"}, walkFlags(t, "0.1.4")...)...)
	want(t, again, 0, "nothing to do: every host is on 0.1.4")
	upgraded(t, "0.1.4")
	sameVMMs(t, before)
}

// TestOperatorKilled kills the operator's process while a node's apt-get install runs. The install finishes on the host;
// applying again goes on where it was.
// proves K35
func TestOperatorKilled(t *testing.T) {
	Fresh(t)
	before := allVMMs(t)
	node := nodeHosts(t)[0].Name
	// A slow package manager: something to be killed in.
	if err := Lab(t).Put(node, "/etc/dpkg/dpkg.cfg.d/zz-slow", []byte("post-invoke=sleep 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{"apply", "--yes", "-i", Lab(t).Inventory()}, walkFlags(t, "0.1.4")...)
	operator := exec.CommandContext(ctx, Program(t, "kibo-rollout"), args...)
	operator.Env = append(os.Environ(), "XDG_STATE_HOME="+StateDir(), "NO_COLOR=1")
	operator.Stdout, operator.Stderr = &out, &out
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, 2*time.Minute, "apt-get installs on "+node, func() bool {
		return Try(t, node, "pgrep", "-f", "apt-get install.*kibotos-node_0.1.4").Exit == 0
	})
	if err := operator.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = operator.Wait() // killed: its exit status says nothing
	if strings.Contains(out.String(), "done:") {
		t.Fatalf("it was over before it was killed:\n%s", out.String())
	}
	within(t, time.Minute, "the install ends on the host by itself", func() bool {
		return strings.HasSuffix(Try(t, node, "dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", "kibotos-node").Stdout, "installed 0.1.4") &&
			Try(t, node, "pgrep", "-x", "apt-get").Exit != 0
	})
	want(t, Rollout(t, "status"), 0, "did not end", "mixed")
	Exec(t, node, "rm", "/etc/dpkg/dpkg.cfg.d/zz-slow")
	want(t, Rollout(t, append([]string{"apply", "--yes"}, walkFlags(t, "0.1.4")...)...), 0, "going on with run", "every VMM is the same process: 6 of 6")
	upgraded(t, "0.1.4")
	sameVMMs(t, before)
	if got := Exec(t, node, "sh", "-c", "ls -d /var/lib/kibo-agent/jobs/*.install.* | wc -l"); got != "1" {
		t.Errorf("%s installs on %s", got, node)
	}
}

// TestNodeFails: a node whose target does not start stays drained and alone; the fleet is mixed and says so (K4, K31).
func TestNodeFails(t *testing.T) {
	Fresh(t)
	before := allVMMs(t)
	flags := append(walkFlags(t, "0.1.8"), "-e", `{"kibo_timeouts": {"start": 15, "ready": 15}}`)
	out := Rollout(t, append([]string{"apply", "--yes"}, flags...)...)
	first := nodeHosts(t)[0]
	want(t, out, 5, first.Name, "stays drained", "next: kibo-rollout resume")
	sameVMMs(t, before)
	for _, h := range nodeHosts(t)[1:] {
		if got := Exec(t, h.Name, "dpkg-query", "-W", "-f", "${Version}", "kibotos-node"); got != "0.1.2" {
			t.Errorf("%s was touched: %s", h.Name, got)
		}
	}
	want(t, Rollout(t, "status"), 0, "mixed", "0.1.8")
	want(t, Rollout(t, append([]string{"plan"}, flags...)...), 3, first.Name)
}
