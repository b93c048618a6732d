package plan

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Schema is the version of plan.json's form.
const Schema = 1

// Input is everything that a plan is made of. Nothing else is looked at.
type Input struct {
	ID        string // of the plan and of the run that applies it
	By        string // who asks; shown in windows and in the run's record
	Mode      Mode
	Why       string
	Target    release.Target
	Hosts     []HostInput // inventory order
	Ctrl      string      // the ctrl host of the inventory, selected or not
	Nodes     checks.Fact[[]checks.NodeRow]
	Findings  []checks.Finding
	Migrate   bool            // ctrl's preview says that a migration is due (K27)
	AgentDebs []release.Deb   // the agent's package by architecture; empty: never installed by the walk
	Serial    int             // nodes at the same time; 0 is 1
	CleanOld  bool            // remove a left-over staging directory of ours first
	Done      map[string]bool // hosts that are on the target already: nothing is staged there
}

// HostInput is a host and what is known of it.
type HostInput struct {
	Host  inventory.Host
	Facts checks.Facts
}

// Build makes the plan of a whole upgrade.
func Build(in Input) (Plan, error) {
	sites, err := sitesOf(in)
	if err != nil {
		return Plan{}, err
	}
	p := in.head()
	p.Nodes = awaited(in)
	w := wave{}
	p.Blocks = append(p.Blocks, perHost(in.open(sites), prepareBlock, "prepare", &w, slices.Concat(prepareRows(), previewRows()))...)
	p.Blocks = append(p.Blocks, ctrlBlocks(sites, p.Nodes, &w)...)
	p.Blocks = append(p.Blocks, nodeBlocks(sites, in.Serial, &w)...)
	p.Blocks = append(p.Blocks, gatewayBlocks(sites, &w)...)
	p.Blocks = append(p.Blocks, perHost(sites, "verify", "read back", &w, verifyRows())...)
	p.Clean = perHost(sites, "clean", "clean up", &w, cleanRows())
	return p, nil
}

// Staging makes the plan that `plan` itself walks before it knows the rest: it touches nothing but the staging directories.
func Staging(in Input) (Plan, error) {
	sites, err := sitesOf(in)
	if err != nil {
		return Plan{}, err
	}
	p := in.head()
	w := wave{}
	p.Blocks = perHost(in.open(sites), "stage", "stage", &w, []row{stageRow()})
	return p, nil
}

// open leaves out the sites of hosts that have nothing left to do.
func (in Input) open(sites []site) []site {
	return slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return in.Done[s.host.Name] })
}

// Agent makes the plan that installs the agent where it is missing or of another version, and touches nothing else.
func Agent(in Input) (Plan, error) {
	p := in.head()
	w := wave{}
	n := w.next()
	for _, h := range in.Hosts {
		arch, err := h.Facts.Arch.Get()
		if err != nil {
			return Plan{}, fmt.Errorf("cannot plan host %s: its architecture is not known: %w", h.Host.Name, err)
		}
		i := slices.IndexFunc(in.AgentDebs, func(d release.Deb) bool { return d.Architecture == arch || d.Architecture == "all" })
		if i < 0 {
			return Plan{}, fmt.Errorf("cannot plan host %s: no kibo-agent package for %s", h.Host.Name, arch)
		}
		d := in.AgentDebs[i]
		if st, err := h.Facts.Agent.Get(); err == nil && st.Version == d.Version {
			continue
		}
		s := site{run: in.ID, by: in.By, host: h.Host, stage: path.Join(h.Host.Kibo.StageDir, "agent"), agentDeb: &d}
		st := steps(prepareRows()[:1], s)
		st[0].Skip.Value = d.Version
		p.Blocks = append(p.Blocks, Block{
			ID: h.Host.Name + "/agent", Title: "install kibo-agent on " + h.Host.Name, Host: h.Host.Name, Wave: n,
			Steps: st, Stuck: "the parts of " + h.Host.Name + " were not touched",
		})
	}
	return p, nil
}

func (in Input) head() Plan {
	p := Plan{
		Schema: Schema, ID: in.ID, Mode: in.Mode, Why: in.Why, Target: in.Target,
		Findings: in.Findings, Notes: notes(in),
	}
	for _, h := range in.Hosts {
		p.Hosts = append(p.Hosts, hostOf(in, h))
	}
	return p
}

func hostOf(in Input, h HostInput) Host {
	out := Host{Name: h.Host.Name, Address: h.Host.Login.Address, Parts: h.Host.Parts, StageDir: StageDir(h.Host, in.Target)}
	if h.Host.Has(release.Node) {
		out.NodeName = h.Host.Kibo.NodeName
	}
	for _, pf := range h.Facts.Parts {
		v, err := pf.Version.Get()
		if err != nil {
			v = ""
		}
		out.Versions = append(out.Versions, PartVersion{pf.Part, v})
	}
	if vmms, err := h.Facts.VMMs.Get(); err == nil {
		out.VMMs = len(vmms)
	}
	return out
}

// StageDir is where a target is unpacked on a host: named after version and content, so that an old tree is never taken
// for the new one.
func StageDir(h inventory.Host, t release.Target) string {
	return path.Join(h.Kibo.StageDir, t.StageName())
}

// sitesOf gives one site for each part of each host, in inventory order.
func sitesOf(in Input) ([]site, error) {
	cli := in.cliHost()
	var out []site
	for _, h := range in.Hosts {
		arch, err := h.Facts.Arch.Get()
		if err != nil {
			return nil, fmt.Errorf("cannot plan host %s: its architecture is not known: %w", h.Host.Name, err)
		}
		s := site{
			run: in.ID, by: in.By, host: h.Host, version: in.Target.Version,
			stage: StageDir(h.Host, in.Target), cliHost: cli(h.Host), cleanOld: in.CleanOld,
		}
		if !path.IsAbs(s.stage) || len(s.stage) < len("/a/b") {
			return nil, fmt.Errorf("cannot plan host %s: kibo_stage_dir %q is not an absolute path below a directory of ours", h.Host.Name, h.Host.Kibo.StageDir)
		}
		for _, part := range h.Host.Parts {
			d, ok := in.Target.Deb(part, arch)
			if !ok {
				return nil, fmt.Errorf("cannot plan host %s: no %s package for %s among the target's .debs", h.Host.Name, part.Package(), arch)
			}
			s.debs = append(s.debs, d)
		}
		s.agentDeb = agentFor(in, h, arch)
		s.idles = idleParts(h.Facts)
		for i, part := range h.Host.Parts {
			p := s
			p.part, p.deb, p.migrate = part, s.debs[i], in.Migrate && part == release.Ctrl
			p.idle, p.old = s.idles[part], installedVersion(h.Facts, part.Package())
			out = append(out, p)
		}
	}
	return out, nil
}

// idleParts are the parts whose service is stopped and did not fail: somebody wants it so.
func idleParts(f checks.Facts) map[release.Part]bool {
	out := map[release.Part]bool{}
	for _, pf := range f.Parts {
		if u, err := pf.Unit.Get(); err == nil && u.Active == "inactive" && u.Stopped() {
			out[pf.Part] = true
		}
	}
	return out
}

func installedVersion(f checks.Facts, name string) string {
	pkgs, err := f.Packages.Get()
	if err != nil {
		return ""
	}
	for _, p := range pkgs {
		if p.Name == name && p.State == "installed" {
			return p.Version
		}
	}
	return ""
}

// agentFor is the agent's package where the host lacks the agent and the gate is wanted there.
func agentFor(in Input, h HostInput, arch string) *release.Deb {
	if _, err := h.Facts.Agent.Get(); err == nil || h.Host.Kibo.Gate == "off" {
		return nil
	}
	for i := range in.AgentDebs {
		if a := in.AgentDebs[i].Architecture; a == arch || a == "all" {
			return &in.AgentDebs[i]
		}
	}
	return nil
}

// cliHost says where the kibo command runs: on the ctrl host, whether it is selected or not, unless the inventory names another.
func (in Input) cliHost() func(inventory.Host) string {
	return func(h inventory.Host) string {
		if on := h.Kibo.CLIOn; on != "" && on != "ctrl" {
			return on
		}
		return in.Ctrl
	}
}

// awaited are the nodes that have to be back after ctrl's change: all that ctrl knew as connected, selected or not (K34).
func awaited(in Input) []string {
	rows, err := in.Nodes.Get()
	if err != nil {
		return nodeNames(in.Hosts)
	}
	var out []string
	for _, r := range rows {
		if r.State == "READY" || r.State == "DRAINING" || r.State == "DRAINED" {
			out = append(out, r.Name)
		}
	}
	return out
}

func nodeNames(hosts []HostInput) []string {
	var out []string
	for _, h := range hosts {
		if h.Host.Has(release.Node) {
			out = append(out, h.Host.Kibo.NodeName)
		}
	}
	return out
}

// Preview is the read-only question to the target program whether it can take over a part (K20, K21).
type Preview struct {
	Host    string
	Part    release.Part
	Command command.Command
}

// Previews lists the preview commands of all sites: ctrl once, every node once.
func Previews(in Input) ([]Preview, error) {
	sites, err := sitesOf(in)
	if err != nil {
		return nil, err
	}
	var out []Preview
	for _, s := range in.open(sites) {
		if s.part.Gateway() {
			continue
		}
		out = append(out, Preview{s.host.Name, s.part, s.preview()})
	}
	return out, nil
}

// UnfinishedCommand is what lists unfinished objects at ctrl while it serves (K22): the check of the installed program, which
// is the target's once ctrl is upgraded.
func UnfinishedCommand(ctrl inventory.Host) command.Command {
	s := site{host: ctrl, part: release.Ctrl}
	argv := s.argv(opCheck)
	if len(ctrl.Kibo.Commands[release.Ctrl][opCheck]) == 0 {
		argv[0] = release.Ctrl.Binary()
	}
	return command.Command{Argv: argv, As: "kibotos-ctrl", Effect: command.Reads, Timeout: 2 * time.Minute}
}
