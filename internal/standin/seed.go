package standin

import "fmt"

// SeedNode gives a node so many Instances: a VMM in its own unit and a binding record for each. Instances that
// are there already count, so seeding twice changes nothing. It is for labs and demos: the real node
// starts Instances when ctrl tells it to.
func SeedNode(env Env, r Release, configPath string, instances int) error {
	c, err := ReadNodeConfig(env, configPath, r)
	if err != nil {
		return err
	}
	rt, id, err := installRuntime(env, c)
	if err != nil {
		return err
	}
	for i := 1; i <= instances; i++ {
		name := fmt.Sprintf("%s-%d", c.Name, i)
		if _, err := env.ReadFile(BindingPath(c.StateDir, name)); err == nil {
			continue
		}
		unit, err := env.StartUnit(UnitSpec{Name: VMMUnit(name), Description: "Kibotos VMM (stand-in) of Instance " + name,
			Argv: []string{installedRuntime(c.StateDir, id) + "/kibotos-vmm"}})
		if err != nil {
			return fmt.Errorf("cannot start VMM of Instance %s: %w", name, err)
		}
		err = writeBinding(env, c.StateDir, Binding{Format: r.Writes, Instance: name, Unit: unit.Name, PID: unit.MainPID,
			Start: unit.Start, Runtime: rt.Number, Install: id, Guest: r.GuestNow, State: instanceRunning})
		if err != nil {
			return err
		}
	}
	return nil
}

// StopInstance ends one Instance as ctrl does when an operator stops its Workspace: its VMM by the name in the
// record, then the record. Nothing else here ever ends a VMM (K41, K43).
func StopInstance(env Env, r Release, configPath, instance string) error {
	c, err := ReadNodeConfig(env, configPath, r)
	if err != nil {
		return err
	}
	b, err := readBinding(env, BindingPath(c.StateDir, instance), r)
	if err != nil {
		return err
	}
	if err := env.StopUnit(b.Unit); err != nil {
		return fmt.Errorf("cannot stop Instance %s: %w", instance, err)
	}
	if err := env.Remove(BindingPath(c.StateDir, instance)); err != nil {
		return fmt.Errorf("cannot remove record of Instance %s: %w", instance, err)
	}
	return nil
}

// SeedCtrl gives ctrl so many Workspaces, each pinned to a Launch of the format of this version.
func SeedCtrl(env Env, r Release, configPath string, workspaces int) error {
	c, err := ReadCtrlConfig(env, configPath, r)
	if err != nil {
		return err
	}
	content := []byte(encode(launch{Format: r.Launch, Name: "stand-in"}) + "\n")
	if err := env.WriteFile(artifactPath(c.StateDir, digest(content)), content, 0o644); err != nil {
		return fmt.Errorf("cannot write Launch: %w", err)
	}
	return env.UpdateStore(DatabasePath(c.StateDir), func(pairs map[string]string) error {
		if pairs[keySchema] == "" {
			setSchema(pairs, r.Schema, false)
		}
		for i := 1; i <= workspaces; i++ {
			pairs[fmt.Sprintf("%sw%d", prefixWorkspace, i)] = encode(workspace{Launch: digest(content)})
		}
		return nil
	})
}
