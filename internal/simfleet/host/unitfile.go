package host

import (
	"path"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// unitFile finds the file that defines a unit; administrators' files win.
func (m *Machine) unitFile(name string) string {
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if at := path.Join(dir, name); m.fs.Exists(at) {
			return at
		}
	}
	return ""
}

// unitDropIns lists the drop-in files of a unit, sorted.
func (m *Machine) unitDropIns(name string) []string {
	var out []string
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"} {
		infos, err := m.fs.ReadDir(memfs.Cred{}, path.Join(dir, name+".d"))
		if err != nil {
			continue
		}
		for _, i := range infos {
			if strings.HasSuffix(i.Name(), ".conf") {
				out = append(out, path.Join(dir, name+".d", i.Name()))
			}
		}
	}
	return out
}

// setting returns the last value of a key in a unit's file and drop-ins; an empty one clears those before it.
func (m *Machine) setting(name, key string) string {
	value := ""
	for _, file := range append([]string{m.unitFile(name)}, m.unitDropIns(name)...) {
		data, err := m.fs.ReadFile(memfs.Cred{}, file)
		if err != nil {
			continue
		}
		for _, line := range lines(data) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
				value = strings.TrimSpace(v)
			}
		}
	}
	return value
}
