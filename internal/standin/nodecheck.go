package standin

import (
	"errors"
	"fmt"
	"path"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Operations of check-maintenance.
const (
	operationUpgrade = "upgrade"
	operationRemove  = "remove"
)

// NodeCheckUpgrade asks whether this version of node can take over what lies on the host. With preview it takes no
// lock and looks at no process, so that the node may run (K20); without, it is the check that counts (K23).
// The runtime that counts is the one in runtimeDir, the installed one if empty (K13). It returns the exit status.
func NodeCheckUpgrade(env Env, r Release, configPath, runtimeDir string, preview bool) int {
	var rep report
	check, ok := newNodeCheck(env, r, configPath, &rep)
	if !ok {
		return rep.write(env.Stdout())
	}
	if runtimeDir == "" {
		runtimeDir = check.config.RuntimeDir
		rep.add(levelNotice, "runtime", "no --runtime-dir: the installed runtime is checked")
	}
	if preview {
		rep.add(levelNotice, "lock", "not taken in a preview")
		rep.add(levelNotice, "processes", "not checked in a preview")
	} else {
		unlock := check.offline(&rep)
		defer unlock()
	}
	bindings := check.records(&rep)
	check.runtime(&rep, runtimeDir, bindings)
	check.guests(&rep, bindings)
	return rep.write(env.Stdout())
}

// NodeCheckMaintenance asks whether the node may be maintained with its own version: for "upgrade" detached
// Volumes and retained layers may stay (K50), for "remove" nothing may be left (K51).
func NodeCheckMaintenance(env Env, r Release, configPath, operation string) int {
	var rep report
	check, ok := newNodeCheck(env, r, configPath, &rep)
	if !ok {
		return rep.write(env.Stdout())
	}
	unlock := check.offline(&rep)
	defer unlock()
	bindings := check.records(&rep)
	if operation == operationRemove {
		check.nothingLeft(&rep, bindings)
	} else {
		check.runtime(&rep, check.config.RuntimeDir, bindings)
		check.guests(&rep, bindings)
	}
	return rep.write(env.Stdout())
}

type nodeCheck struct {
	env        Env
	release    Release
	config     NodeConfig
	configPath string
	switches   switches
}

func newNodeCheck(env Env, r Release, configPath string, rep *report) (nodeCheck, bool) {
	if env.User() != "root" {
		rep.add(levelBlocker, "configuration", "must be run as root")
		return nodeCheck{}, false
	}
	c, err := ReadNodeConfig(env, configPath, r)
	if err != nil {
		rep.add(levelBlocker, "configuration", "%v", err)
		return nodeCheck{}, false
	}
	rep.add(levelOK, "configuration", "%s can be read", configPath)
	return nodeCheck{env, r, c, configPath, switches{env, c.StateDir, r.Version}}, true
}

// offline takes the exclusive lock and verifies that this node's processes are gone. The unit is known by the
// path of the configuration: with a copy it would be some other node's, and is not looked at (K26).
func (c nodeCheck) offline(rep *report) (unlock func()) {
	unlock = func() {}
	lock, err := c.env.TryLock(nodeLock(c.config.StateDir))
	switch {
	case errors.Is(err, ErrLocked):
		rep.add(levelBlocker, "lock", "the exclusive lock is held: the node or another check is running")
	case err != nil:
		rep.add(levelBlocker, "lock", "cannot take the exclusive lock: %v", err)
	default:
		rep.add(levelOK, "lock", "exclusive lock taken")
		unlock = func() { _ = lock.Close() }
	}
	c.processes(rep)
	return unlock
}

func (c nodeCheck) processes(rep *report) {
	name := release.Node.Unit()
	if path.Clean(c.configPath) != release.Node.Config() {
		rep.add(levelNotice, "processes", "%s is not the configuration of %s: its processes were not checked", c.configPath, name)
		return
	}
	unit, err := c.env.Unit(name)
	switch {
	case err != nil:
		rep.add(levelBlocker, "processes", "cannot tell the state of %s: %v", name, err)
	case c.switches.on(switchProcessesLeft):
		rep.add(levelBlocker, "processes", "a helper process of %s is still there: switch %s", name, switchProcessesLeft)
	case unit.Active != "inactive" && unit.Active != "failed", unit.MainPID != 0, unit.Processes != 0:
		rep.add(levelBlocker, "processes", "%s is %s with %d process(es)", name, unit.Active, unit.Processes)
	default:
		rep.add(levelOK, "processes", "%s is %s without processes", name, unit.Active)
	}
}

func (c nodeCheck) records(rep *report) []Binding {
	before := rep.blockers
	files, err := bindingFiles(c.env, c.config.StateDir)
	if err != nil {
		rep.add(levelBlocker, "records", "%v", err)
		return nil
	}
	if c.switches.on(switchRecordUnreadable) {
		rep.add(levelBlocker, "records", "cannot read binding record of Instance %s: switch %s", path.Base(first(files, "i1")), switchRecordUnreadable)
	}
	var bindings []Binding
	for _, file := range files {
		b, err := readBinding(c.env, file, c.release)
		if err != nil {
			rep.add(levelBlocker, "records", "%v", err)
			continue
		}
		bindings = append(bindings, b)
		if unit, err := c.env.Unit(b.Unit); err != nil || unit.MainPID != b.PID {
			rep.add(levelNotice, "records", "VMM %s of Instance %s is not running as recorded", b.Unit, b.Instance)
		}
	}
	rep.okUnless(before, "records", "%d binding record(s) can be read", len(bindings))
	return bindings
}

// runtime checks the target's runtime and the one that each Instance keeps using (K43).
func (c nodeCheck) runtime(rep *report, dir string, bindings []Binding) {
	before := rep.blockers
	target, _, err := readRuntime(c.env, dir)
	if err != nil {
		rep.add(levelBlocker, "runtime", "%v", err)
		return
	}
	for i, b := range bindings {
		_, _, err := readRuntime(c.env, installedRuntime(c.config.StateDir, b.Install))
		switch {
		case i == 0 && c.switches.on(switchRuntimeDamaged):
			rep.add(levelBlocker, "runtime", "Instance %s: its runtime is damaged: switch %s; stop its Workspace first", b.Instance, switchRuntimeDamaged)
		case i == 0 && c.switches.on(switchRuntimeRange):
			rep.add(levelBlocker, "runtime", "Instance %s: its runtime cannot be driven: switch %s; stop its Workspace first", b.Instance, switchRuntimeRange)
		case err != nil:
			rep.add(levelBlocker, "runtime", "Instance %s: %v; stop its Workspace first", b.Instance, err)
		case !target.drives(b.Runtime):
			rep.add(levelBlocker, "runtime", "Instance %s: runtime %d, this version drives %d and %d; stop its Workspace first",
				b.Instance, b.Runtime, target.Number-1, target.Number)
		}
	}
	rep.okUnless(before, "runtime", "runtime %d in %s drives every Instance", target.Number, dir)
}

func (c nodeCheck) guests(rep *report, bindings []Binding) {
	before := rep.blockers
	for i, b := range bindings {
		switch {
		case i == 0 && c.switches.on(switchGuestRange):
			rep.add(levelBlocker, "guest", "Instance %s: guest protocol out of range: switch %s; stop its Workspace first", b.Instance, switchGuestRange)
		case !c.release.Guest.Has(b.Guest):
			rep.add(levelBlocker, "guest", "Instance %s: guest protocol %d out of range %s; stop its Workspace first", b.Instance, b.Guest, c.release.Guest)
		case b.Guest < c.release.GuestNow, c.switches.on(switchGuestLacks):
			rep.add(levelNotice, "guest", "Instance %s: guest lacks capabilities of protocol %d until it restarts", b.Instance, c.release.GuestNow)
		}
	}
	rep.okUnless(before, "guest", "every guest protocol is in range %s", c.release.Guest)
}

func (c nodeCheck) nothingLeft(rep *report, bindings []Binding) {
	for _, b := range bindings {
		rep.add(levelBlocker, "records", "Instance %s is still here", b.Instance)
	}
	if n := c.switches.count(switchVolume, 1); n > 0 {
		rep.add(levelBlocker, "records", "%s is still here", fmt.Sprintf("%d detached Volume(s)", n))
	}
}
