package host

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Exit statuses of kibo-agent.
const (
	agentFailed = 1
	agentUsage  = 2
	agentDenied = 4
	agentBusy   = 5
)

// agentProgram is kibo-agent: the real one's command line, the real gate's decisions, simulated jobs.
func agentProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	if len(p.Args) < 2 {
		return p.Fail(agentUsage, "no command")
	}
	words := p.Args[2:]
	values := "--file --operation --package --sha256 --output --for --until --id --issued-by --reason --key --timeout --why --by --max --machine-id --run --plan"
	o := parse(words, "--once --json --lease --all", values, true)
	if o.bad != "" || (o.get("--output") != "" && o.get("--output") != "json" && o.get("--output") != "jsonl" && o.get("--output") != "text") {
		m.noteUnknown(strings.Join(p.Args[1:], " "))
		return p.Fail(agentUsage, "unknown flag %s", o.bad)
	}
	if p.Args[1] == "version" {
		return m.agentVersion(p, o)
	}
	if p.Cred.UID != 0 {
		return p.Fail(agentFailed, "must be run as root")
	}
	switch p.Args[1] {
	case "check":
		return m.agentCheck(p, o)
	case "allow":
		return m.agentAllow(p, o)
	case "close":
		return m.agentClose(p, o)
	case "hold":
		return m.agentHold(p, o)
	case "release":
		return m.agentRelease(p, o)
	case "renew":
		return m.agentRenew(p, o)
	case "acknowledge": // nothing goes past a simulated gate
		return answer(p, o, map[string]any{"acknowledged": []gate.Ungated{}}, "there was nothing to acknowledge")
	case "status":
		return m.agentStatus(p, o)
	case "watch":
		return m.agentWatch(ctx, p, o)
	case "run":
		return m.agentRun(ctx, p, o)
	case "wait":
		return m.agentWait(ctx, p, o)
	}
	m.noteUnknown("kibo-agent " + p.Args[1])
	return p.Fail(agentUsage, "unknown command %q", p.Args[1])
}

// AgentRelease is where a simulated kibo-agent package says its version.
const AgentRelease = "/usr/share/kibo-agent/version"

func (m *Machine) agentVersionText(exe string) string {
	data, err := m.fs.ReadFile(memfs.Cred{}, path.Join(path.Dir(exe), "..", "..", AgentRelease))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}

func (m *Machine) agentVersion(p *shell.Proc, o options) int {
	v := m.agentVersionText(p.Args[0])
	if o.has("--json") {
		printJSON(p, map[string]string{"name": "kibo-agent", "version": v})
		return 0
	}
	p.Printf("kibo-agent %s\n", v)
	return 0
}

func printJSON(p *shell.Proc, v any) { _ = json.NewEncoder(p.Stdout).Encode(v) }

// gateRequest reads --operation, --package and --sha256.
func gateRequest(o options) (gate.Request, error) {
	packages, err := packageFlags(o)
	return gate.Request{Operation: o.get("--operation"), Packages: packages, SHA256: o.set["--sha256"], Run: o.get("--run"), Plan: o.get("--plan")}, err
}

func packageFlags(o options) (map[string]string, error) {
	var packages map[string]string
	for _, nv := range o.set["--package"] {
		name, version, ok := strings.Cut(nv, "=")
		if !ok {
			return nil, fmt.Errorf("--package %s is not NAME=VERSION", nv)
		}
		if packages == nil {
			packages = map[string]string{}
		}
		packages[name] = version
	}
	return packages, nil
}

func (m *Machine) agentCheck(p *shell.Proc, o options) int {
	req, err := gateRequest(o)
	if err != nil {
		return p.Fail(agentUsage, "%v", err)
	}
	f, err := m.allowFile(orDefault(o.get("--file"), gate.DefaultPath))
	v := m.here().Decide(f, err, req)
	if o.get("--output") == "json" {
		printJSON(p, v)
	} else {
		p.Printf("%s\n", v.Reason)
	}
	if !v.Open {
		return agentDenied
	}
	return 0
}

func (m *Machine) agentAllow(p *shell.Proc, o options) int {
	end, err := windowEnd(m.w.Now(), o)
	if err != nil {
		return p.Fail(agentUsage, "%v", err)
	}
	packages, err := packageFlags(o)
	if err != nil {
		return p.Fail(agentUsage, "%v", err)
	}
	f := gate.AllowFile{
		NotAfter: end.Unix(), ID: o.get("--id"), Operations: o.set["--operation"], Packages: packages, SHA256: o.set["--sha256"],
		SingleUse: o.has("--once"), IssuedBy: o.get("--issued-by"), Reason: o.get("--reason"),
		MachineID: o.get("--machine-id"), Run: o.get("--run"), Plan: o.get("--plan"),
	}
	if o.has("--lease") {
		if f.RenewUntil, err = leaseEnd(m.w.Now(), o); err != nil || f.ID == "" {
			return p.Fail(agentUsage, "--lease needs --for, --id and one end of all renewals: %v", err)
		}
		f.NotAfter = min(f.NotAfter, f.RenewUntil)
	}
	data, err := json.Marshal(f)
	if err == nil {
		_, err = gate.Parse(data)
	}
	if v := m.here().Decide(f, err, gate.Request{}); !v.Open && v.Code != gate.CodeHeld {
		return p.Fail(agentFailed, "%s", v.Reason)
	}
	return m.putWindow(p, o, f)
}

func windowEnd(now time.Time, o options) (time.Time, error) {
	switch {
	case o.has("--for") == o.has("--until") && !(o.has("--lease") && o.has("--for")):
		return time.Time{}, fmt.Errorf("one of --for and --until is needed")
	case o.has("--for"):
		d, err := time.ParseDuration(o.get("--for"))
		if err != nil || d <= 0 {
			return time.Time{}, fmt.Errorf("--for %s is no duration", o.get("--for"))
		}
		return now.Add(d), nil
	}
	if t, err := time.Parse(time.RFC3339, o.get("--until")); err == nil {
		return t, nil
	}
	n := leadingInt(o.get("--until"))
	if n == 0 {
		return time.Time{}, fmt.Errorf("--until %s is no time", o.get("--until"))
	}
	return time.Unix(int64(n), 0), nil
}

// leaseEnd is the end of all renewals.
func leaseEnd(now time.Time, o options) (int64, error) {
	if !o.has("--for") || o.has("--max") && o.has("--until") {
		return 0, fmt.Errorf("either --max or --until")
	}
	if o.has("--until") {
		o.set = map[string][]string{"--until": o.set["--until"]}
	} else {
		o.set = map[string][]string{"--for": {orDefault(o.get("--max"), "4h")}}
	}
	t, err := windowEnd(now, o)
	return t.Unix(), err
}

func (m *Machine) agentClose(p *shell.Proc, o options) int {
	say := func(closed bool, text string) int {
		if o.get("--output") == "json" {
			printJSON(p, map[string]any{"closed": closed, "reason": text})
		} else {
			p.Printf("%s\n", text)
		}
		return 0
	}
	if !m.fs.Exists(gate.DefaultPath) {
		return say(true, "there was no window")
	}
	if id := o.get("--id"); id != "" {
		if f, err := m.allowFile(gate.DefaultPath); err == nil && f.ID != id {
			return say(false, fmt.Sprintf("the window there is %q, not %q: left alone", f.ID, id))
		}
	}
	if err := m.fs.RemoveAll(memfs.Cred{}, gate.DefaultPath); err != nil {
		return p.Fail(agentFailed, "cannot remove allow-file: %v", err)
	}
	return say(true, "closed")
}

func (m *Machine) agentStatus(p *shell.Proc, o options) int {
	v, f := m.Gate()
	s := gate.Status{
		Version: m.agentVersionText(p.Args[0]), Open: v.Open, Code: v.Code, Reason: v.Reason, Window: f,
		Layers: []gate.Layer{{Name: "apt", Active: m.aptHook() != ""}, {Name: "dpkg", Active: m.dpkgHook() != ""}},
		Holds:  m.holds(), Jobs: m.listJobs(),
	}
	if o.get("--output") == "json" {
		printJSON(p, s)
	} else {
		p.Printf("%s: %s\n", v.Code, v.Reason)
	}
	return 0
}

func (m *Machine) listJobs() []gate.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []gate.Job
	for _, key := range slices.Sorted(maps.Keys(m.jobs)) {
		out = append(out, m.jobs[key].view())
	}
	return out
}
