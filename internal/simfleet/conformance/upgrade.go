package conformance

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// upgrade walks table 5 by hand for ctrl and one node.
// proves K10 K12 K20 K21 K23 K31 K34 K41 K52 Z8
func (f Fleet) upgrade(t *testing.T) {
	vms := []string{"systemctl", "show", "-p", "Id,MainPID,ExecMainStartTimestampMonotonic", "kibotos-vmm-*.service"}
	before := inOrder(f.run(t, step{on: "node", argv: vms}))
	if n := strings.Count(before, "kibotos-vmm-"); n != f.Instances {
		t.Fatalf("%d VMs, want %d", n, f.Instances)
	}
	for _, part := range []string{"ctrl", "node"} {
		f.stage(t, part)
	}
	f.refusals(t)

	f.window(t, "ctrl")
	f.job(t, "ctrl", "stop", "systemctl", "stop", "kibotos-ctrl.service")
	f.run(t, step{on: "ctrl", argv: []string{"sudo", "-n", "-u", "kibotos-ctrl", "--", stageDir + "/next-ctrl/usr/bin/kibotos-ctrl", "check-upgrade", "--config", "/etc/kibotos/ctrl/config.toml"},
		out: `.*summary: 0 blocker\(s\)\n`})
	f.job(t, "ctrl", "install", apt("ctrl")...)
	f.job(t, "ctrl", "start", "systemctl", "start", "kibotos-ctrl.service")
	f.run(t, step{on: "ctrl", argv: sudo("kibo-agent", "close")})
	f.await(t, "READY", f.From)

	f.window(t, "node")
	f.run(t, step{on: "ctrl", argv: []string{"kibo", "node", "drain", f.NodeName}})
	f.await(t, "DRAIN(ING|ED)", f.From)
	f.job(t, "node", "stop", "systemctl", "stop", "kibotos-node.service")
	f.run(t, step{on: "node", argv: sudo(stageDir+"/next-node/usr/bin/kibotos-node", "check-upgrade", "--config", "/etc/kibotos/node/config.toml",
		"--runtime-dir", stageDir+"/next-node/usr/lib/kibotos/node"), out: `.*summary: 0 blocker\(s\)\n`})
	f.job(t, "node", "install", apt("node")...)
	f.run(t, step{on: "node", argv: []string{"systemctl", "is-active", "kibotos-node.service"}, exit: 3, out: `inactive\n`})
	f.job(t, "node", "start", "systemctl", "start", "kibotos-node.service")
	f.run(t, step{on: "node", argv: sudo("kibo-agent", "close")})
	f.await(t, "DRAIN(ING|ED)", f.To)
	f.run(t, step{on: "ctrl", argv: []string{"kibo", "node", "cancel-drain", f.NodeName}})
	f.await(t, "READY", f.To)

	for _, part := range []string{"ctrl", "node"} {
		f.run(t, step{on: part, argv: sudo("rm", "-rf", "--", stageDir)})
		f.run(t, step{on: part, argv: []string{"dpkg-query", "-W", "-f", "${Version}", "kibotos-" + part}, out: regexp.QuoteMeta(f.To)})
	}
	if after := inOrder(f.run(t, step{on: "node", argv: vms})); after != before {
		t.Errorf("the VMs are other processes:\n%s\nbefore:\n%s", after, before)
	}
}

// inOrder sorts what systemctl says of several units: its own order differs from call to call.
func inOrder(text string) string {
	units := strings.Split(strings.TrimSpace(text), "\n\n")
	slices.Sort(units)
	return strings.Join(units, "\n\n")
}

const stageDir = "/var/lib/kibo-rollout/stage/conformance"

func apt(part string, more ...string) []string {
	argv := []string{"apt-get", "install", "-y", "--no-remove", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120",
		"-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"}
	return append(append(argv, more...), stageDir+"/"+part+".deb")
}

func (f Fleet) stage(t *testing.T, part string) {
	t.Helper()
	for _, s := range []step{
		{argv: sudo("mkdir", "-p", "-m", "0755", stageDir)},
		{argv: sudo("dd", "of="+stageDir+"/"+part+".deb", "conv=fsync", "status=none"), stdin: string(f.Debs[part])},
		{argv: sudo("chmod", "0644", stageDir+"/"+part+".deb")},
		{argv: sudo("dpkg-deb", "-x", stageDir+"/"+part+".deb", stageDir+"/next-"+part)},
		{argv: sudo("touch", stageDir+"/complete")},
	} {
		s.on = part
		f.run(t, s)
	}
}

// refusals are what must not go through: no window, and a node that runs.
func (f Fleet) refusals(t *testing.T) {
	t.Helper()
	old := step{on: "node", argv: []string{"dpkg-query", "-W", "-f", "${Version} ${db:Status-Status}", "kibotos-node"}, out: regexp.QuoteMeta(f.From) + " installed"}
	f.run(t, step{on: "node", argv: sudo(apt("node")...), exit: 100, err: `.*kibo-agent: refused: install kibotos-node ` + regexp.QuoteMeta(f.To) + `\n.*`})
	f.run(t, old)
	f.run(t, step{on: "node", argv: sudo("dpkg", "-i", stageDir+"/node.deb"), exit: 2, err: `.*kibo-agent: refused: .*`})
	f.run(t, old)
	f.window(t, "node")
	f.run(t, step{on: "node", argv: sudo(apt("node")...), exit: 100, out: `.*kibotos-node: refused: kibotos-node.service is active, stop it first\r?\n.*`})
	f.run(t, old)
	f.run(t, step{on: "node", argv: sudo("kibo-agent", "close")})
}

// window opens the gate for one part's package file and nothing else.
func (f Fleet) window(t *testing.T, part string) {
	t.Helper()
	f.run(t, step{on: part, argv: sudo("kibo-agent", "allow", "--for", "10m", "--id", "conformance", "--operation", "stop", "--operation", "install",
		"--operation", "start", "--package", "kibotos-"+part+"="+f.To, "--sha256", fmt.Sprintf("%x", sha256.Sum256(f.Debs[part])))})
}

func (f Fleet) job(t *testing.T, part, operation string, argv ...string) {
	t.Helper()
	run := []string{"kibo-agent", "run", "--key", "conf-upgrade-" + part + "-" + operation, "--operation", operation}
	if operation == "install" {
		run = append(run, "--package", "kibotos-"+part+"="+f.To, "--sha256", fmt.Sprintf("%x", sha256.Sum256(f.Debs[part])))
	}
	f.run(t, step{on: part, argv: sudo(append(append(run, "--output", "json", "--"), argv...)...), out: `\{.*"state":"finished","exit":0.*\}\n`})
}

// await asks ctrl until the node is in a state with a release.
func (f Fleet) await(t *testing.T, state, version string) {
	t.Helper()
	want := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(f.NodeName) + ` +` + state + ` +` + regexp.QuoteMeta(version) + ` `)
	deadline := time.Now().Add(30 * time.Second)
	for {
		out, err := f.Exec(t.Context(), f.Ctrl, []string{"kibo", "node", "list"}, "")
		if err == nil && want.MatchString(out.Stdout) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("node %s is not %s with %s:\n%s%s", f.NodeName, state, version, out.Stdout, out.Stderr)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
