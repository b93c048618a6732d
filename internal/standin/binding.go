package standin

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Binding is a node's record of one Instance: from it a new node program finds the running VMM again.
type Binding struct {
	Format   int    `json:"format"` // readable formats are declared by the version, at most two (K64)
	Instance string `json:"instance"`
	Unit     string `json:"unit"`
	PID      int    `json:"pid"`
	Start    string `json:"start"`
	Runtime  int    `json:"runtime"`   // number of the runtime it was started with
	Install  string `json:"runtimeId"` // installation it keeps using
	Guest    int    `json:"guest"`     // guest protocol
	Layers   bool   `json:"layers"`    // has a retained writable layer
	State    string `json:"state"`     // RUNNING or FAILED
}

// States of an Instance.
const (
	instanceRunning = "RUNNING"
	instanceFailed  = "FAILED"
)

func bindingDir(state string) string { return path.Join(state, "bindings") }

// BindingPath is where the record of an Instance lies.
func BindingPath(state, instance string) string {
	return path.Join(bindingDir(state), instance+".json")
}

// VMMUnit is the transient service of an Instance.
func VMMUnit(instance string) string { return "kibotos-vmm-" + instance + ".service" }

// readBinding reads one record if its format is one that the version reads.
func readBinding(env Env, file string, r Release) (Binding, error) {
	data, err := env.ReadFile(file)
	if err != nil {
		return Binding{}, fmt.Errorf("cannot read binding record: %w", err)
	}
	var b Binding
	if err := json.Unmarshal(data, &b); err != nil {
		return Binding{}, fmt.Errorf("cannot parse binding record %s: %w", file, err)
	}
	if b.Format < r.ReadsMin || b.Format > r.Writes {
		return b, fmt.Errorf("cannot read binding record %s: format %d, %s reads %d..%d", path.Base(file), b.Format, r.Version, r.ReadsMin, r.Writes)
	}
	return b, nil
}

func writeBinding(env Env, state string, b Binding) error {
	if err := env.WriteFile(BindingPath(state, b.Instance), []byte(encode(b)+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write binding record: %w", err)
	}
	return nil
}

// bindingFiles lists the paths of all records, sorted.
func bindingFiles(env Env, state string) ([]string, error) {
	entries, err := env.ReadDir(bindingDir(state))
	if err != nil {
		return nil, fmt.Errorf("cannot list binding records: %w", err)
	}
	var files []string
	for _, name := range entries {
		if strings.HasSuffix(name, ".json") {
			files = append(files, path.Join(bindingDir(state), name))
		}
	}
	return files, nil
}
