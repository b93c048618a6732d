package standin

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
)

// RuntimeDir is where the installed package has the VM runtime.
const RuntimeDir = "/usr/lib/kibotos/node"

const runtimeManifest = "runtime.json"

// RuntimeFile is one file of a VM runtime.
type RuntimeFile struct {
	Name    string
	Mode    fs.FileMode
	Content []byte
}

// runtime is what runtime.json says: its number and the digest of every other file.
type runtime struct {
	Number int               `json:"number"`
	Files  map[string]string `json:"files"`
}

// RuntimeFiles are the files of the runtime with this number, manifest first: always the same bytes, so that
// two versions with one runtime carry identical files (K32).
func RuntimeFiles(number int) []RuntimeFile {
	vmm := fmt.Sprintf("#!/bin/sh\n# Stand-in for the virtual machine monitor of runtime %d.\nexec sleep infinity\n", number)
	files := []RuntimeFile{
		{Name: "guest.img", Mode: 0o644, Content: fmt.Appendf(nil, "stand-in guest image of runtime %d\n", number)},
		{Name: "kibotos-vmm", Mode: 0o755, Content: []byte(vmm)},
	}
	manifest := runtime{Number: number, Files: map[string]string{}}
	for _, f := range files {
		manifest.Files[f.Name] = digest(f.Content)
	}
	return append([]RuntimeFile{{Name: runtimeManifest, Mode: 0o644, Content: []byte(encode(manifest) + "\n")}}, files...)
}

// readRuntime reads and verifies the runtime in a directory. The id tells two runtimes apart.
func readRuntime(env Env, dir string) (r runtime, id string, err error) {
	data, err := env.ReadFile(path.Join(dir, runtimeManifest))
	if err != nil {
		return r, "", fmt.Errorf("cannot read VM runtime: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, "", fmt.Errorf("cannot parse VM runtime in %s: %w", dir, err)
	}
	if r.Number < 1 || len(r.Files) == 0 {
		return r, "", fmt.Errorf("cannot use VM runtime in %s: manifest is empty", dir)
	}
	for name, want := range r.Files {
		content, err := env.ReadFile(path.Join(dir, path.Base(name)))
		if err != nil {
			return r, "", fmt.Errorf("cannot read VM runtime: %w", err)
		}
		if digest(content) != want {
			return r, "", fmt.Errorf("cannot use VM runtime in %s: %s is damaged", dir, name)
		}
	}
	return r, fmt.Sprintf("rt%d-%.8s", r.Number, digest(data)), nil
}

// drives reports whether a node with this runtime can drive an Instance of another one: its own and the
// one before (K43).
func (r runtime) drives(number int) bool { return number == r.Number || number == r.Number-1 }

func installedRuntime(state, id string) string { return path.Join(state, "runtimes", id) }

// installRuntime copies the package's runtime to where running VMMs keep using it after the
// package was replaced.
func installRuntime(env Env, c NodeConfig) (r runtime, id string, err error) {
	r, id, err = readRuntime(env, c.RuntimeDir)
	if err != nil {
		return r, "", err
	}
	dir := installedRuntime(c.StateDir, id)
	if _, _, err := readRuntime(env, dir); err == nil {
		return r, id, nil
	}
	modes := map[string]fs.FileMode{"kibotos-vmm": 0o755}
	for name := range r.Files {
		if err := copyFile(env, path.Join(c.RuntimeDir, name), path.Join(dir, name), max(modes[name], 0o644)); err != nil {
			return r, "", err
		}
	}
	return r, id, copyFile(env, path.Join(c.RuntimeDir, runtimeManifest), path.Join(dir, runtimeManifest), 0o644)
}

func copyFile(env Env, from, to string, mode fs.FileMode) error {
	data, err := env.ReadFile(from)
	if err != nil {
		return fmt.Errorf("cannot install VM runtime: %w", err)
	}
	if err := env.WriteFile(to, data, mode); err != nil {
		return fmt.Errorf("cannot install VM runtime: %w", err)
	}
	return nil
}
