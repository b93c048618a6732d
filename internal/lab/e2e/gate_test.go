//go:build lab && linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// Where the tests of the gate put packages on a host.
const (
	nodeDebAt  = "/var/tmp/gate-node.deb" // says nothing of what is in it
	helloDebAt = "/var/tmp/gate-hello.deb"
	agentDebAt = "/var/tmp/gate-agent.deb"
)

// gated is a node host of each Debian release, made anew, with the agent on it and the node's target package at hand.
func gated(t *testing.T) []lab.Host {
	t.Helper()
	var hosts []lab.Host
	seen := map[string]bool{}
	for _, host := range Lab(t).With(release.Node) {
		if !seen[host.Suite] {
			seen[host.Suite] = true
			hosts = append(hosts, host)
		}
	}
	names := make([]string, 0, len(hosts))
	for _, host := range hosts {
		names = append(names, host.Name)
	}
	renew := func() {
		// Not the test's own context: that has ended when tests clean up.
		if err := Lab(t).Remake(context.Background(), names...); err != nil {
			t.Error(err)
		}
	}
	renew()
	t.Cleanup(renew)
	debs, err := filepath.Glob(filepath.Join(Lab(t).Debs("0.1.4"), "kibotos-node*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("the node's target packages: %q %v", debs, err)
	}
	for _, host := range hosts {
		Copy(t, host.Name, debs[0], nodeDebAt)
		Copy(t, host.Name, Lab(t).HelloDeb(), helloDebAt)
		Copy(t, host.Name, AgentDeb(t), agentDebAt)
		Exec(t, host.Name, "apt-get", "install", "-y", agentDebAt)
		Exec(t, host.Name, "systemctl", "stop", "kibotos-node.service")
	}
	return hosts
}

// nodeVersion is the installed version of the node's package, and its state.
func nodeVersion(t *testing.T, host string) string {
	t.Helper()
	return Exec(t, host, "dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", "kibotos-node")
}

// refused tries every way to change the node's package and wants each refused with the reason.
func refused(t *testing.T, host, reason string) {
	t.Helper()
	before := nodeVersion(t, host)
	for line, exit := range map[string]int{
		"apt-get install -y --reinstall " + nodeDebAt: 100,
		"apt-get remove -y kibotos-node":              100,
		"dpkg -i " + nodeDebAt:                        2,
		"dpkg --purge kibotos-node":                   2,
		"dpkg -i " + helloDebAt + " " + nodeDebAt:     2,
	} {
		got := Try(t, host, strings.Fields(line)...)
		if got.Exit != exit || !strings.Contains(got.Stdout+got.Stderr, reason) {
			t.Errorf("%s: %+v, want exit %d and %q", line, got, exit, reason)
		}
	}
	if after := nodeVersion(t, host); after != before {
		t.Errorf("version went from %s to %s", before, after)
	}
}

// refusedOddly tries what dpkg understands as well, in one way or another, and wants each refused with the reason.
func refusedOddly(t *testing.T, host, reason string) {
	t.Helper()
	Exec(t, host, "sh", "-c", `set -e; rm -rf /var/tmp/gate-odd; mkdir -p /var/tmp/gate-odd/in /var/tmp/gate-odd/linked /var/tmp/gate-odd/p/DEBIAN; cd /var/tmp/gate-odd
		ln -s "$1" in/x.deb; ln -s ../in linked/there
		printf 'Package: takeover\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nReplaces: kibotos-node\nBreaks: kibotos-node\nDescription: x\n' >p/DEBIAN/control
		dpkg-deb -b p takeover.deb >/dev/null`, "gate", nodeDebAt)
	before := nodeVersion(t, host)
	for _, line := range []string{
		"dpkg --unpack -- ../gate-node.deb", "dpkg -iR linked", "dpkg -i /dev/stdin <" + nodeDebAt, "dpkg -i /proc/self/fd/7 7<" + nodeDebAt,
		"dpkg --force-all -r KIBOTOS-NODE", "dpkg -i --auto-deconfigure takeover.deb",
	} {
		got := Try(t, host, "sh", "-c", "cd /var/tmp/gate-odd && "+line)
		if got.Exit != 2 || !strings.Contains(got.Stderr, reason) {
			t.Errorf("%s: %+v, want exit 2 and %q", line, got, reason)
		}
	}
	if after := nodeVersion(t, host); after != before {
		t.Errorf("version went from %s to %s", before, after)
	}
}

// passes installs and removes a package that is none of the gate's business.
func passes(t *testing.T, host string) {
	t.Helper()
	Exec(t, host, "apt-get", "install", "-y", helloDebAt)
	Exec(t, host, "dpkg", "--purge", "hello-lab")
	Exec(t, host, "dpkg", "-i", helloDebAt)
	Exec(t, host, "apt-get", "purge", "-y", "hello-lab")
	Exec(t, host, "dpkg", "--configure", "-a")
}

// TestGate proves Z1, Z2, Z5 and Z8 with the real apt and dpkg of both Debian releases.
func TestGate(t *testing.T) {
	for _, host := range gated(t) {
		t.Run(host.Suite, func(t *testing.T) {
			name := host.Name
			var status gate.Status
			if err := json.Unmarshal([]byte(Exec(t, name, "kibo-agent", "status", "--output", "json")), &status); err != nil {
				t.Fatal(err)
			}
			for _, layer := range status.Layers {
				if !layer.Active {
					t.Errorf("layer %s: %s", layer.Name, layer.Reason)
				}
			}
			t.Run("no window", func(t *testing.T) {
				refused(t, name, "there is no "+gate.DefaultPath)
				refusedOddly(t, name, "there is no "+gate.DefaultPath)
				passes(t, name)
			})
			// The daemon takes an expired file away, sooner or later; the gate is the same without it.
			Exec(t, name, "systemctl", "stop", "kibo-agent.service")
			closedFiles(t, name)
			Exec(t, name, "systemctl", "start", "kibo-agent.service")
			t.Run("single use", func(t *testing.T) { singleUse(t, name) })
			t.Run("killed caller", func(t *testing.T) { killedCaller(t, name) })
			t.Run("inhibitor", func(t *testing.T) { inhibitor(t, name) })
			t.Run("agent removed", func(t *testing.T) { agentRemoved(t, name) })
		})
	}
}

// closedFiles: every kind of allow-file that does not count, each with its own reason.
func closedFiles(t *testing.T, host string) {
	for name, tc := range map[string]struct{ spoil, reason string }{
		"expired":            {`echo "{\"notAfter\":$(date +%s)}" >"$1"`, "the window ended at"},
		"mode":               {`chmod 0664 "$1"`, "has mode 0664, not 0644"},
		"owner":              {`chown ops "$1"`, "belongs to"},
		"symlink":            {`mv "$1" "$1.real"; ln -s "$1.real" "$1"`, "is a symbolic link"},
		"hard link":          {`ln "$1" /var/lib/gate-second`, "has 2 names"},
		"writable directory": {`chmod 0775 /var/lib/kibo-agent`, "others than its owner can write there"},
		"milliseconds":       {`echo "{\"notAfter\":$(date +%s)000}" >"$1"`, "looks like milliseconds"},
		"two objects":        {`cat "$1" "$1" >"$1.x"; mv "$1.x" "$1"`, "is not one JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			// As another tool would place it: nothing but the file.
			script := `set -e; echo "{\"notAfter\":$(($(date +%s) + 600))}" >"$1"; chmod 0644 "$1"; kibo-agent check >/dev/null; ` + tc.spoil
			Exec(t, host, "sh", "-c", script, "gate", gate.DefaultPath)
			got := Try(t, host, "kibo-agent", "check")
			if got.Exit != 4 || !strings.Contains(got.Stdout, tc.reason) {
				t.Errorf("check: %+v, want %q", got, tc.reason)
			}
			refused(t, host, tc.reason)
			Exec(t, host, "sh", "-c", `rm -f "$1" "$1".* /var/lib/gate-second; chmod 0755 /var/lib/kibo-agent`, "gate", gate.DefaultPath)
		})
	}
}

// runJob runs a job on the host and returns it.
func runJob(t *testing.T, host string, args ...string) gate.Job {
	t.Helper()
	got := Try(t, host, append([]string{"kibo-agent", "run", "--output", "json"}, args...)...)
	var job gate.Job
	if err := json.Unmarshal([]byte(got.Stdout), &job); err != nil {
		t.Fatalf("%q: %+v: %v", args, got, err)
	}
	return job
}

// singleUse: the window is gone before the operation begins, and still covers apt's and dpkg's questions in it.
func singleUse(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "5m", "--once", "--operation", "install", "--package", "kibotos-node=0.1.4")
	order := []string{"--key", "once", "--operation", "install", "--package", "kibotos-node=0.1.4", "--", "sh", "-c",
		`kibo-agent check; exec apt-get install -y "$1"`, "gate", nodeDebAt}
	job := runJob(t, host, order...)
	if job.State != gate.JobFinished || job.Exit != 0 || !strings.Contains(job.Output, "there is no "+gate.DefaultPath) {
		t.Errorf("%+v", job)
	}
	if got := nodeVersion(t, host); got != "0.1.4 installed" {
		t.Errorf("version %s", got)
	}
	if again := runJob(t, host, order...); !again.Started.Equal(job.Started) || again.State != gate.JobFinished {
		t.Errorf("the same key ran again: %+v", again)
	}
	if other := runJob(t, host, "--key", "twice", "--operation", "install", "--package", "kibotos-node=0.1.4", "--", "true"); other.Code != gate.CodeMissing {
		t.Errorf("the window was used twice: %+v", other)
	}
}

// killedCaller: who asked for the job is killed and the window ends meanwhile; the job goes on, holds the host
// and can be waited for.
func killedCaller(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "3s")
	Exec(t, host, "sh", "-c", fmt.Sprintf(`kibo-agent run --key killed --operation install --package kibotos-node=0.1.4 -- sh -c 'sleep 4; exec apt-get install -y --reinstall %s' >/dev/null 2>&1 &
		caller=$!; sleep 1; kill -9 $caller`, nodeDebAt))
	if got := Try(t, host, "kibo-agent", "wait", "--key", "killed", "--timeout", "100ms", "--output", "json"); got.Exit != 1 || !strings.Contains(got.Stdout, `"state":"running"`) {
		t.Errorf("after the caller was killed: %+v", got)
	}
	if job := runJob(t, host, "--key", "other", "--operation", "stop", "--", "true"); job.State != gate.JobBusy {
		t.Errorf("a second job: %+v", job)
	}
	got := Try(t, host, "kibo-agent", "wait", "--key", "killed", "--output", "json")
	var job gate.Job
	if err := json.Unmarshal([]byte(got.Stdout), &job); err != nil || got.Exit != 0 || job.State != gate.JobFinished {
		t.Errorf("%+v %v", got, err)
	}
	if took := job.Ended.Sub(job.Started); took < 4*time.Second {
		t.Errorf("it did not outlive the window: %s", took)
	}
}

// inhibitor: proves Z7 on the real logind.
func inhibitor(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "5m")
	for mode, want := range map[string]string{"block": gate.CodeInhibited, "delay": ""} {
		Exec(t, host, "systemd-run", "-q", "--unit=gate-inhibitor", "systemd-inhibit", "--what=shutdown", "--mode="+mode, "--who=backup", "--why=nightly", "sleep", "60")
		for range 50 {
			if strings.Contains(Exec(t, host, "kibo-agent", "status", "--output", "json"), "nightly") {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if job := runJob(t, host, "--key", "held-"+mode, "--operation", "stop", "--", "true"); job.Code != want {
			t.Errorf("%s: %+v", mode, job)
		}
		Exec(t, host, "systemctl", "stop", "gate-inhibitor.service")
	}
	Exec(t, host, "kibo-agent", "close")
}

// agentRemoved: a removed or broken agent and an orphaned hook block no other package and open nothing; a purge
// takes the gate away.
func agentRemoved(t *testing.T, host string) {
	Exec(t, host, "apt-get", "remove", "-y", "kibo-agent")
	refused(t, host, "kibo-agent is not installed, but its gate is")
	refusedOddly(t, host, "kibo-agent is not installed, but its gate is")
	passes(t, host)
	Exec(t, host, "sh", "-c", "echo broken >/usr/bin/kibo-agent; chmod 0755 /usr/bin/kibo-agent")
	refused(t, host, "/usr/bin/kibo-agent does not work")
	passes(t, host)
	Exec(t, host, "sh", "-c", "rm /usr/bin/kibo-agent; mv /etc/kibo-agent /etc/kibo-agent.away")
	passes(t, host)
	if got := Try(t, host, "apt-get", "remove", "-y", "kibotos-node"); got.Exit != 100 {
		t.Errorf("without its scripts the gate is open: %+v", got)
	}
	Exec(t, host, "mv", "/etc/kibo-agent.away", "/etc/kibo-agent")
	Exec(t, host, "dpkg", "--purge", "kibo-agent")
	passes(t, host)
	Exec(t, host, "apt-get", "install", "-y", "--reinstall", nodeDebAt)
}
