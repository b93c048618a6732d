package plan

import (
	"path"
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// site is one part on one host with everything that a row of a table needs to become a Step.
type site struct {
	run      string // id of the plan
	by       string // who asks, for the window
	host     inventory.Host
	part     release.Part
	deb      release.Deb
	debs     []release.Deb // of every part of the host
	version  string        // SemVer of the target
	stage    string        // staging directory
	cliHost  string        // where the kibo command runs
	migrate  bool          // the preview says that a migration is due
	agentDeb *release.Deb
	idle     bool                  // the service was stopped on purpose: it stays so
	idles    map[release.Part]bool // the same for every part of the host
	old      string                // Debian version of the part's package that is installed now
	cleanOld bool                  // remove what an earlier attempt left in the staging directory
}

func (s site) block() string { return s.host.Name + "/" + string(s.part) }

func (s site) node() string { return s.host.Kibo.NodeName }

func (s site) next(p release.Part) string { return path.Join(s.stage, "next-"+string(p)) }

func (s site) debPath(d release.Deb) string { return path.Join(s.stage, d.File) }

// window is the id of the window that covers the block: one a run and block.
func (s site) window() string { return s.run + "." + s.host.Name + "." + string(s.part) }

func (s site) managed() bool { return s.host.Kibo.Gate != "external" && s.host.Kibo.Gate != "off" }

// config is the part's configuration file on the host.
func (s site) config() string {
	if c := s.host.Kibo.Config[s.part]; c != "" {
		return c
	}
	return s.part.Config()
}

// argv is the command of an operation: the inventory's, or the documented one.
func (s site) argv(op string) []string {
	argv := s.host.Kibo.Commands[s.part][op]
	if len(argv) == 0 {
		argv = defaultCommand(s.part, op)
	}
	return fill(argv, map[string]string{
		"unit": s.part.Unit(), "deb": s.debPath(s.deb), "next": s.next(s.part),
		"config": s.config(), "version": s.version, "node": s.node(),
	})
}

// limit is the time limit of an operation: kibo_timeouts, or the default.
func (s site) limit(op string, def time.Duration) time.Duration {
	if d := s.host.Kibo.Timeouts[op]; d > 0 {
		return d
	}
	return def
}

// job is a state-changing command on the site's host. It goes through the gate unless the inventory switched that off.
func (s site) job(op string, effect command.Effect) Action {
	c := command.Command{Argv: s.argv(op), As: command.Root, Effect: effect}
	if s.host.Kibo.Gate == "off" {
		return Action{Verb: Exec, Host: s.host.Name, Command: c}
	}
	return Action{Verb: Job, Host: s.host.Name, Command: c, Job: &JobSpec{
		Operation: jobOperation(op),
		Packages:  map[string]string{s.deb.Package: s.deb.Version}, SHA256: []string{s.deb.SHA256},
	}}
}

// cli is a call of the kibo command, as a job on the host where it runs.
func (s site) cli(op string, words ...string) []Action {
	argv := append(slices.Clone(s.cliArgv()), words...)
	c := command.Command{Argv: argv, As: command.Root, Effect: command.Changes}
	if !s.managed() {
		if s.host.Kibo.Gate == "off" {
			return []Action{{Verb: Exec, Host: s.cliHost, Command: c}}
		}
		return []Action{{Verb: Job, Host: s.cliHost, Command: c, Job: &JobSpec{Operation: op}}}
	}
	// One call, one permission: the window is used up by the call itself (Z3), so there is nothing to close.
	w := Window{
		ID: s.window() + "." + op, For: 5 * time.Minute, Operations: []string{op}, Once: true,
		By: s.by, Reason: "kibo node " + op + " " + s.node(),
	}
	return []Action{
		{Verb: Grant, Host: s.cliHost, Command: AllowCommand(w)},
		{Verb: Job, Host: s.cliHost, Command: c, Job: &JobSpec{Operation: op}},
	}
}

func (s site) cliArgv() []string {
	if len(s.host.Kibo.CLI) > 0 {
		return s.host.Kibo.CLI
	}
	return []string{"kibo"}
}

// open is the window over a host's change, bound to the package, version and checksum (K: nothing else fits through).
func (s site) open(ops ...string) Action {
	w := Window{
		ID: s.window(), For: s.windowFor(), Operations: ops,
		Packages: map[string]string{s.deb.Package: s.deb.Version}, SHA256: []string{s.deb.SHA256},
		By: s.by, Reason: "upgrade of " + s.part.Package() + " to " + s.version,
	}
	return Action{Verb: Grant, Host: s.host.Name, Command: AllowCommand(w), Record: RecordWindow, Of: s.host.Name}
}

// windowFor is as long as everything that it covers may take, and no longer than the site allows. A shorter one is opened anew
// before each of its commands (see covered).
func (s site) windowFor() time.Duration {
	d := s.needs()
	if limit := s.host.Kibo.WindowMax; limit > 0 && limit < d {
		return limit
	}
	return d
}

// needs is how long the block may take from its stop to its end.
func (s site) needs() time.Duration {
	d := 5*time.Minute + s.limit(opStop, stopLimit) + s.limit(opCheck, checkLimit) + s.limit(opInstall, installLimit) + s.limit(opStart, startLimit)
	if s.migrate {
		d += s.limit(opMigrate, migrateLimit)
	}
	return d
}

// covered is a command of the block under its window. Where the window may end before the block does, it is opened anew first.
func (s site) covered(op string, effect command.Effect) []Action {
	job := s.job(op, effect)
	if s.managed() && s.windowFor() < s.needs() {
		return []Action{s.open(changeOps(s.migrate)...), job}
	}
	return []Action{job}
}

// Default time limits.
const (
	stopLimit    = 5 * time.Minute
	checkLimit   = 5 * time.Minute
	installLimit = 15 * time.Minute
	migrateLimit = 30 * time.Minute
	startLimit   = 5 * time.Minute
)

func (s site) close() Action {
	return Action{Verb: Revoke, Host: s.host.Name, Command: CloseCommand(s.window()), Record: RecordWindow, Of: s.host.Name}
}

func (s site) installed() Cond {
	return Cond{Kind: CondPackage, Host: s.host.Name, Package: s.deb.Package, Value: s.deb.Version}
}

// running is what the part has to be in the end: up, with the installed program. One that was stopped on purpose stays stopped.
func (s site) running() Cond {
	if s.idle {
		return s.stopped()
	}
	return Cond{Kind: CondRunning, Host: s.host.Name, Part: s.part}
}

func (s site) stopped() Cond { return Cond{Kind: CondStopped, Host: s.host.Name, Part: s.part} }

func (s site) released() Cond { return Cond{Kind: CondNodeRelease, Node: s.node(), Value: s.version} }

func (s site) nodeIs(states string) Cond {
	return Cond{Kind: CondNodeState, Node: s.node(), Value: states}
}

func (s site) continuity() Cond { return Cond{Kind: CondContinuity, Host: s.host.Name} }

func all(of ...Cond) *Cond { return &Cond{Kind: CondAll, Of: of} }

func anyOf(of ...Cond) *Cond { return &Cond{Kind: CondAny, Of: of} }

// changeOps are what the window over a block permits.
func changeOps(migrate bool) []string {
	ops := []string{gate.OpStop, gate.OpInstall, gate.OpStart}
	if migrate {
		ops = append(ops, gate.OpMigrate)
	}
	return ops
}
