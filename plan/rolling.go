package plan

import (
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// ctrlRows is step 2 of the rolling table: ctrl first, alone (K34).
func ctrlRows() []row {
	return []row{
		freeRow(),
		{
			kind: "window", title: "open the gate for this change", effect: command.Changes, rule: "Z2 Z5",
			complete: "the allow-file permits just this package, version and checksum",
			applies:  site.managed, fill: fillWindow,
		},
		{
			kind: "stop", title: "stop ctrl", effect: command.Disrupts, rule: "K22 K23",
			complete: "unit inactive, no process left", fill: fillStop,
		},
		{
			kind: "check", title: "offline check with the target program", effect: command.Reads, rule: "K21 K23 K28",
			complete: "exit status 0 and no blocker in the report", fill: fillCtrlCheck,
		},
		{
			kind: "install", title: "replace the package", effect: command.Changes, rule: "K11 K52",
			complete: "dpkg says installed at the target version", fill: fillInstall,
		},
		{
			kind: "migrate", title: "migrate the database", effect: command.Changes, rule: "K27 K33",
			complete: "exit status 0", applies: func(s site) bool { return s.migrate }, fill: fillMigrate,
		},
		{
			kind: "start", title: "start ctrl", effect: command.Disrupts, rule: "K52",
			complete: "unit active, running the installed program", applies: site.serves, fill: fillStart,
		},
	}
}

// nodeRows are steps 3 to 5 of the rolling table, for one node.
func nodeRows() []row {
	return []row{
		freeRow(),
		{
			kind: "drain", title: "drain the node", effect: command.Changes, rule: "K35 K42",
			complete: "ctrl schedules nothing new there (DRAINING is enough)", applies: site.serves, fill: fillDrain,
		},
		{
			kind: "settle", title: "wait for running commands and Transfers", effect: command.Reads, rule: "K22",
			complete: "ctrl's report lists nothing unfinished on the node", applies: site.serves, fill: fillSettle,
		},
		{
			kind: "window", title: "open the gate for this change", effect: command.Changes, rule: "Z2 Z5",
			complete: "the allow-file permits just this package, version and checksum",
			applies:  site.managed, fill: fillWindow,
		},
		{
			kind: "stop", title: "stop the node service (VMs go on)", effect: command.Disrupts, rule: "K34 K41",
			complete: "unit inactive, no process left, every VMM still the same process", fill: fillStop,
		},
		{
			kind: "check", title: "offline check with the target program", effect: command.Reads, rule: "K13 K23 K26 K60",
			complete: "exit status 0 and no blocker in the report", fill: fillNodeCheck,
		},
		{
			kind: "install", title: "replace the package", effect: command.Changes, rule: "K11 K51 K52",
			complete: "dpkg says installed at the target version", fill: fillInstall,
		},
		{
			kind: "start", title: "start the node service", effect: command.Disrupts, rule: "K52",
			complete: "unit active, running the installed program", applies: site.serves, fill: fillStart,
		},
		{
			kind: "back", title: "wait until the node is back", effect: command.Reads, rule: "K31 K41",
			complete: "ctrl says connected and RELEASE is the target; Instances re-adopted; every VMM the same process",
			applies:  site.serves, fill: fillBack,
		},
		{
			kind: "cancel-drain", title: "cancel the drain that this run began", effect: command.Changes, rule: "K35 K54",
			complete: "the node is READY; a drain of somebody else stays", applies: site.serves, fill: fillCancelDrain,
		},
	}
}

// gatewayRows is the reinstall procedure of a gateway, K55, at the target version (K30).
func gatewayRows() []row {
	return []row{
		freeRow(),
		{
			kind: "window", title: "open the gate for this change", effect: command.Changes, rule: "Z2 Z5",
			complete: "the allow-file permits just this package, version and checksum",
			applies:  site.managed, fill: fillWindow,
		},
		{
			kind: "stop", title: "stop the gateway", effect: command.Disrupts, rule: "K55",
			complete: "unit inactive (not failed), no process left", fill: fillGatewayStop,
		},
		{
			kind: "install", title: "replace the package", effect: command.Changes, rule: "K55 K56",
			complete: "dpkg says installed at the target version", fill: fillInstall,
		},
		{
			kind: "start", title: "start the gateway", effect: command.Disrupts, rule: "K30 K55",
			complete: "unit active, running the installed program", applies: site.serves, fill: fillStart,
		},
	}
}

// freeRow comes first in a block: a held host is not touched at all, not even drained.
func freeRow() row {
	return row{
		kind: "free", title: "see that nobody holds the host", effect: command.Reads, rule: "Z7",
		complete: "no block inhibitor and no hold on the host",
		fill: func(s site, st *Step) {
			st.Free = true
			st.Limit = s.limit("held", 10*time.Minute)
			st.Skip = s.replaced()
			st.Done = &Cond{Kind: CondFree, Host: s.host.Name}
			st.OnFail = "nothing was begun on " + s.host.Name
		},
	}
}

// serves reports whether the part's service is meant to run.
func (s site) serves() bool { return !s.idle }

func fillWindow(s site, st *Step) {
	st.Skip = s.replaced()
	st.Act = []Action{s.open(changeOps(s.migrate)...)}
	st.Done = &Cond{Kind: CondWindow, Host: s.host.Name, Value: s.window()}
	st.OnFail = "nothing was stopped on " + s.host.Name
}

// replaced holds when the part is on the target and serving: then no row that changes it has anything to do.
func (s site) replaced() *Cond {
	if s.part == release.Node && !s.idle {
		return all(s.installed(), s.running(), s.released())
	}
	return all(s.installed(), s.running())
}

func fillStop(s site, st *Step) {
	st.Limit = s.limit(opStop, stopLimit)
	st.Skip = anyOf(s.stopped(), *s.replaced())
	st.Act = s.covered(opStop, command.Disrupts)
	st.Done = all(s.stopped(), s.continuity())
	st.Now = s.part.Unit() + " is stopped"
	if s.host.Has(release.Node) {
		st.Proof = s.host.Name
	}
	st.OnFail = s.part.Unit() + " may be stopped; no file was replaced"
}

func fillGatewayStop(s site, st *Step) {
	fillStop(s, st)
	inactive := s.stopped()
	inactive.Value = "inactive" // K55: the package script refuses a failed unit
	st.Skip = anyOf(inactive, *s.replaced())
	st.Done = &inactive
}

func fillCtrlCheck(s site, st *Step) {
	st.Limit = s.limit(opCheck, checkLimit)
	st.Skip = ptr(s.installed())
	st.Act = []Action{{
		Verb: Exec, Host: s.host.Name, Expect: s.ctrlReport(),
		Command: command.Command{Argv: s.argv(opCheck), As: "kibotos-ctrl", Effect: command.Reads},
	}}
	st.Back = s.wayBack()
	st.OnFail = "no file was replaced; the check changed nothing"
}

// ctrlReport expects a report without blockers; one that asks for a migration only where the plan has it.
func (s site) ctrlReport() string {
	if s.migrate {
		return "report-migrate:ctrl"
	}
	return "report:ctrl"
}

func fillNodeCheck(s site, st *Step) {
	st.Limit = s.limit(opCheck, checkLimit)
	st.Skip = ptr(s.installed())
	st.Act = []Action{{
		Verb: Exec, Host: s.host.Name, Expect: "report:" + string(s.part),
		Command: command.Command{Argv: s.argv(opCheck), As: command.Root, Effect: command.Reads},
	}}
	st.Back = s.wayBack()
	st.OnFail = "no file was replaced; the check changed nothing"
}

// wayBack starts the version that is still installed, waits for it, and gives the drain back (K60). It is walked only while that
// version is what is installed.
func (s site) wayBack() []Step {
	if s.idle {
		return nil
	}
	start := Step{
		ID: s.block() + "/back-start", Title: "start the version that is still installed", Host: s.host.Name, Effect: command.Disrupts, Rule: "K60",
		Limit: s.limit(opStart, startLimit), Skip: ptr(s.running()), Act: []Action{s.job(opStart, command.Disrupts)}, Done: ptr(s.running()),
		Only: s.notReplaced(), Now: s.part.Unit() + Runs, OnFail: s.part.Unit() + " is stopped",
	}
	if s.managed() {
		start.Act = append([]Action{s.open(changeOps(s.migrate)...)}, start.Act...)
	}
	if s.part != release.Node {
		return []Step{start}
	}
	start.Done = all(s.running(), s.nodeIs("READY|DRAINING|DRAINED"), s.continuity())
	start.Proves = s.host.Name
	cancel := Step{
		ID: s.block() + "/back-cancel-drain", Title: "cancel the drain that this run began", Host: s.host.Name, Effect: command.Changes, Rule: "K60",
		Limit: time.Minute,
	}
	fillCancelDrain(s, &cancel)
	cancel.Only = s.notReplaced()
	return []Step{start, cancel}
}

// notReplaced holds while the package is the one that was there when the plan was made.
func (s site) notReplaced() *Cond {
	return &Cond{Kind: CondPackage, Host: s.host.Name, Package: s.deb.Package, Value: s.old}
}

func fillInstall(s site, st *Step) {
	st.Limit = s.limit(opInstall, installLimit)
	st.Title = "install " + s.deb.Package + " " + s.deb.Version
	st.Skip = ptr(s.installed())
	st.Act = s.covered(opInstall, command.Changes)
	st.Done = all(s.installed(), s.stopped()) // whatever a package script started would run before its migration (K52)
	st.Back = s.wayBack()
	st.OnFail = "look at the host before anything else is tried there"
}

// fillMigrate does not go by the service's state: one that something started by itself has not migrated.
func fillMigrate(s site, st *Step) {
	st.Limit = s.limit(opMigrate, migrateLimit)
	st.Skip = &Cond{Kind: CondStepDone, Value: st.ID}
	st.Act = s.covered(opMigrate, command.Changes)
	st.OnFail = "ctrl stays stopped; after a migration the old ctrl refuses the database: only forward (K33)"
}

func fillStart(s site, st *Step) {
	st.Limit = s.limit(opStart, startLimit)
	st.Skip = ptr(s.running())
	st.Act = s.covered(opStart, command.Disrupts)
	st.Done = ptr(s.running())
	st.Now = s.part.Unit() + Runs
	st.OnFail = s.part.Unit() + " on " + s.host.Name + " does not run"
}

func fillDrain(s site, st *Step) {
	st.Skip = anyOf(s.nodeIs("DRAINING|DRAINED"), *s.replaced(), s.stopped())
	st.Act = s.cli(gate.OpDrain, "node", "drain", s.node())
	last := &st.Act[len(st.Act)-1]
	last.Record, last.Of = RecordDrain, s.node()
	st.Done = ptr(s.nodeIs("DRAINING|DRAINED"))
	st.OnFail = "nothing was changed on " + s.host.Name
}

func fillSettle(s site, st *Step) {
	st.Limit = s.limit("settle", 30*time.Minute)
	st.Skip = anyOf(s.stopped(), *s.replaced())
	st.Done = &Cond{Kind: CondSettled, Node: s.node()}
	st.OnFail = "node " + s.node() + " stays drained; nothing was stopped"
}

func fillBack(s site, st *Step) {
	st.Limit = s.limit("ready", 5*time.Minute)
	st.Done = all(s.continuity(), s.running(), s.released(), s.nodeIs("READY|DRAINING|DRAINED"), Cond{Kind: CondAdopted, Node: s.node(), Host: s.host.Name})
	st.Skip = st.Done
	if s.host.Has(release.Node) {
		st.Proves = s.host.Name
	}
	st.OnFail = "node " + s.node() + " stays drained and alone (K31)"
}

func fillCancelDrain(s site, st *Step) {
	st.If, st.Of = RecordDrain, s.node()
	st.Skip = ptr(s.nodeIs("READY"))
	st.Act = s.cli(gate.OpCancelDrain, "node", "cancel-drain", s.node())
	st.Done = ptr(s.nodeIs("READY"))
	st.OnFail = "node " + s.node() + " is still drained"
}

func ptr(c Cond) *Cond { return &c }
