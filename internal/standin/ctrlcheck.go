package standin

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// CtrlCheckUpgrade asks whether this version of ctrl can take over the state that lies there. It takes no lock
// of the service and writes nothing, so it may run before and after the stop alike (K21). It returns the exit status.
func CtrlCheckUpgrade(env Env, r Release, configPath string) int {
	var rep report
	c, err := ReadCtrlConfig(env, configPath, r)
	if err != nil {
		rep.add(levelBlocker, "configuration", "%v", err)
		return rep.write(env.Stdout())
	}
	rep.add(levelOK, "configuration", "%s can be read", configPath)
	check := ctrlCheck{env: env, release: r, config: c, configPath: configPath, switches: switches{env, c.StateDir, r.Version}}
	check.pki(&rep)
	pairs, err := env.ReadStore(DatabasePath(c.StateDir))
	if err != nil {
		rep.add(levelBlocker, "database", "cannot read database: %v", err)
		return rep.write(env.Stdout())
	}
	due := check.database(&rep, pairs)
	check.templates(&rep, pairs, due)
	check.launches(&rep, pairs)
	check.unfinished(&rep, pairs)
	return rep.write(env.Stdout())
}

type ctrlCheck struct {
	env        Env
	release    Release
	config     CtrlConfig
	configPath string
	switches   switches
}

func (c ctrlCheck) pki(rep *report) {
	err := checkPKI(c.env, c.config.StateDir)
	if c.switches.on(switchPKIBroken) {
		err = fmt.Errorf("cannot use PKI: switch %s", switchPKIBroken)
	}
	if err != nil {
		rep.add(levelBlocker, "pki", "%v", err)
		return
	}
	rep.add(levelOK, "pki", "key and certificate belong together")
}

// database judges the migration state (K27, K28) and tells whether a migration is due.
func (c ctrlCheck) database(rep *report, pairs map[string]string) bool {
	version, dirty, err := schemaOf(pairs)
	if err != nil {
		rep.add(levelBlocker, "database", "%v", err)
		return false
	}
	dirty = dirty || c.switches.on(switchDatabaseDirty)
	if c.switches.on(switchDatabaseNewer) {
		version = c.release.Schema + 1
	}
	if c.switches.on(switchDatabaseOlder) {
		version = c.release.MinSchema - 1
	}
	err = schemaError(c.release, version, dirty)
	switch {
	case err != nil:
		rep.add(levelBlocker, "database", "%v", err)
	case version < c.release.Schema:
		rep.add(levelNotice, "database", "schema %d, %s needs %d", version, c.release.Version, c.release.Schema)
		rep.add(levelAction, "database", "run kibotos-ctrl migrate --config %s after replacing files, before starting", c.configPath)
		return true
	default:
		rep.add(levelOK, "database", "schema %d", version)
	}
	return false
}

// schemaError tells why a release cannot take over a database at all (K28, K5).
func schemaError(r Release, version int, dirty bool) error {
	switch {
	case dirty:
		return fmt.Errorf("migration state is dirty at schema %d: an earlier migration stopped half-way", version)
	case version > r.Schema:
		return fmt.Errorf("schema %d is newer than schema %d of %s", version, r.Schema, r.Version)
	case version < r.MinSchema:
		return fmt.Errorf("schema %d is older than schema %d, the oldest that %s can start from", version, r.MinSchema, r.Version)
	}
	return nil
}

func (c ctrlCheck) templates(rep *report, pairs map[string]string, due bool) {
	form := pairs[keyTemplateForm]
	switch {
	case c.switches.on(switchTemplatesBroken):
		rep.add(levelBlocker, "templates", "the table form of the template catalogue is wrong: switch %s", switchTemplatesBroken)
	case due:
		rep.add(levelAfter, "templates", "needs schema %d, applies after migration", c.release.Schema)
	case form != pairs[keySchema]:
		rep.add(levelBlocker, "templates", "table form %q does not belong to schema %s", form, pairs[keySchema])
	default:
		rep.add(levelOK, "templates", "table form %s", form)
	}
}

func (c ctrlCheck) launches(rep *report, pairs map[string]string) {
	before, all := rep.blockers, names(pairs, prefixWorkspace)
	if c.switches.on(switchLaunchUnreadable) {
		rep.add(levelBlocker, "launch", "Workspace %s: cannot read Launch: switch %s", first(all, "w1"), switchLaunchUnreadable)
	}
	for _, name := range all {
		var w workspace
		err := json.Unmarshal([]byte(pairs[prefixWorkspace+name]), &w)
		if err == nil {
			err = readLaunch(c.env, c.config.StateDir, w.Launch, c.release.Launch)
		}
		if err != nil {
			rep.add(levelBlocker, "launch", "Workspace %s: %v", name, err)
		}
	}
	rep.okUnless(before, "launch", "%d Workspace(s), every Launch can be read", len(all))
}

// unfinished lists what is half-done: only a snapshot while ctrl serves (K22).
func (c ctrlCheck) unfinished(rep *report, pairs map[string]string) {
	before := rep.blockers
	kinds := []string{"command", "transfer", "execution", "artifact-task", "allocation"}
	for i := range c.switches.count(switchUnfinished, 1) {
		rep.add(levelBlocker, "unfinished", "%s switch-%d is not finished", kinds[i%len(kinds)], i+1)
	}
	for _, name := range names(pairs, prefixObject) {
		kind, err := strconv.Unquote(pairs[prefixObject+name])
		if err != nil {
			kind = "object of unknown kind"
		}
		rep.add(levelBlocker, "unfinished", "%s %s is not finished", kind, name)
	}
	rep.okUnless(before, "unfinished", "nothing is half-done")
}

func first(list []string, fallback string) string {
	if len(list) > 0 {
		return list[0]
	}
	return fallback
}
