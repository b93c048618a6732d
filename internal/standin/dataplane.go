package standin

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// DataPlane is a node's record of one data-plane process. It holds the exec, terminal, transfer and
// port-forward connections and lives on when the node is stopped.
type DataPlane struct {
	Unit    string `json:"unit"`
	Version string `json:"version"` // of the node that started it
	Retired bool   `json:"retired"` // replaced; ends with its last connection
}

func dataPlaneDir(state string) string { return path.Join(state, "dataplane") }

func dataPlanePath(state, unit string) string {
	return path.Join(dataPlaneDir(state), strings.TrimSuffix(unit, ".service")+".json")
}

// DataPlaneAddress is the file in which a data-plane process writes the ADDR:PORT it listens on.
func DataPlaneAddress(state, unit string) string {
	return path.Join(dataPlaneDir(state), strings.TrimSuffix(unit, ".service")+".address")
}

// DataPlaneConnections is the file in which a data-plane process writes how many connections it holds.
func DataPlaneConnections(state, unit string) string {
	return path.Join(dataPlaneDir(state), strings.TrimSuffix(unit, ".service")+".connections")
}

// DataPlanes reads the records of a node's data-plane processes, sorted by unit.
func DataPlanes(env Env, state string) ([]DataPlane, error) {
	entries, err := env.ReadDir(dataPlaneDir(state))
	if err != nil {
		return nil, fmt.Errorf("cannot list data-plane processes: %w", err)
	}
	var all []DataPlane
	for _, name := range entries {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		data, err := env.ReadFile(path.Join(dataPlaneDir(state), name))
		if err != nil {
			return nil, fmt.Errorf("cannot read data-plane record: %w", err)
		}
		var d DataPlane
		if err := json.Unmarshal(data, &d); err != nil {
			return nil, fmt.Errorf("cannot parse data-plane record %s: %w", name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// startDataPlane starts the process of this version and retires those of its line: they end with their last
// connection. Those of another line are ended at once, and their connections with them (K34, K47).
func startDataPlane(env Env, r Release, c NodeConfig, configPath string) error {
	all, err := DataPlanes(env, c.StateDir)
	if err != nil {
		return err
	}
	line, onLine := Line(r.Version)
	serving := false
	for _, d := range all {
		unit, err := env.Unit(d.Unit)
		if err != nil {
			return fmt.Errorf("cannot find data-plane process %s: %w", d.Unit, err)
		}
		old, ok := Line(d.Version)
		switch {
		case unit.Active != "active", !ok || !onLine || old != line:
			err = endDataPlane(env, c.StateDir, d)
		case d.Version == r.Version && !d.Retired:
			serving = true
		default:
			d.Retired = true
			err = writeDataPlane(env, c.StateDir, d)
		}
		if err != nil {
			return err
		}
	}
	if serving {
		return nil
	}
	random, err := env.Random(3)
	if err != nil {
		return fmt.Errorf("cannot name data-plane process: %w", err)
	}
	// The record comes first: a process without one would never be ended.
	d := DataPlane{Unit: "kibotos-dp-" + c.Name + "-" + hex.EncodeToString(random) + ".service", Version: r.Version}
	if err := writeDataPlane(env, c.StateDir, d); err != nil {
		return err
	}
	_, err = env.StartUnit(UnitSpec{Name: d.Unit, Description: "Kibotos data plane (stand-in) of " + c.Name,
		Argv: []string{env.Executable(), "dataplane", "--config", configPath, "--unit", d.Unit}})
	if err != nil {
		return fmt.Errorf("cannot start data-plane process: %w", err)
	}
	return nil
}

func writeDataPlane(env Env, state string, d DataPlane) error {
	if err := env.WriteFile(dataPlanePath(state, d.Unit), []byte(encode(d)+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write data-plane record: %w", err)
	}
	return nil
}

// endDataPlane ends one recorded process and forgets it.
func endDataPlane(env Env, state string, d DataPlane) error {
	if err := env.StopUnit(d.Unit); err != nil {
		return fmt.Errorf("cannot end data-plane process %s: %w", d.Unit, err)
	}
	for _, file := range []string{DataPlaneAddress(state, d.Unit), DataPlaneConnections(state, d.Unit), dataPlanePath(state, d.Unit)} {
		if err := env.Remove(file); err != nil {
			return fmt.Errorf("cannot forget data-plane process: %w", err)
		}
	}
	return nil
}

// servingPlane tells where the process that is not retired is reached.
func servingPlane(env Env, state string) (string, error) {
	all, err := DataPlanes(env, state)
	if err != nil {
		return "", err
	}
	for _, d := range all {
		if d.Retired {
			continue
		}
		if address, err := env.ReadFile(DataPlaneAddress(state, d.Unit)); err == nil {
			return strings.TrimSpace(string(address)), nil
		}
		return d.Unit, nil
	}
	return "", nil
}

// endRetired ends the replaced processes that hold no connection any more.
func endRetired(env Env, state string) error {
	all, err := DataPlanes(env, state)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !d.Retired {
			continue
		}
		data, err := env.ReadFile(DataPlaneConnections(state, d.Unit))
		if n, bad := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && (bad != nil || n > 0) {
			continue
		}
		if err := endDataPlane(env, state, d); err != nil {
			return err
		}
	}
	return nil
}

// EndDataPlanes ends every recorded data-plane process; the package script does so once a removal is allowed.
func EndDataPlanes(env Env, state string) error {
	all, err := DataPlanes(env, state)
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := endDataPlane(env, state, d); err != nil {
			return err
		}
	}
	return nil
}
