package standin

import (
	"errors"
	"fmt"
	"path"
)

func ctrlLock(state string) string { return path.Join(state, "ctrl.lock") }

// CtrlMigrate brings the database to this version's schema (K27). It needs ctrl to be stopped, says so
// when there is nothing to do, and leaves the state dirty if it stops half-way.
func CtrlMigrate(env Env, r Release, configPath string) error {
	c, err := ReadCtrlConfig(env, configPath, r)
	if err != nil {
		return err
	}
	lock, err := env.TryLock(ctrlLock(c.StateDir))
	if err != nil {
		return fmt.Errorf("cannot migrate while ctrl runs: %w", err)
	}
	defer func() { _ = lock.Close() }()
	database := DatabasePath(c.StateDir)
	pairs, err := env.ReadStore(database)
	if err != nil {
		return fmt.Errorf("cannot read database: %w", err)
	}
	version, dirty, err := schemaOf(pairs)
	if err != nil {
		return err
	}
	if err := schemaError(r, version, dirty); err != nil {
		return fmt.Errorf("cannot migrate: %w", err)
	}
	if version == r.Schema {
		_, _ = fmt.Fprintf(env.Stdout(), "database has schema %d already, nothing to do\n", version)
		return nil
	}
	mark := func(dirty bool) error {
		return env.UpdateStore(database, func(pairs map[string]string) error {
			setSchema(pairs, r.Schema, dirty)
			return nil
		})
	}
	if err := mark(true); err != nil {
		return fmt.Errorf("cannot migrate: %w", err)
	}
	if (switches{env, c.StateDir, r.Version}).on(switchMigrateFails) {
		return errors.New("cannot migrate: stopped half-way by switch " + switchMigrateFails)
	}
	if err := mark(false); err != nil {
		return fmt.Errorf("cannot migrate: %w", err)
	}
	_, _ = fmt.Fprintf(env.Stdout(), "database migrated from schema %d to %d\n", version, r.Schema)
	return nil
}
