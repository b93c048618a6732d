package checks

import (
	"path"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Want says what to ask of one host. The zero value of a field means its default, or that it is not asked for.
type Want struct {
	Host     string         // for messages
	Parts    []release.Part // in part order
	VMMUnits string         // unit name pattern; default kibotos-vmm-*.service; asked only where node runs
	StageDir string         // the target's own staging directory; "": not asked
	StateDir string         // default /var/lib/kibo-rollout; asked only where ctrl runs
	Paths    []string       // where free space matters; default: where staging and installing write
	// Commands overrides, per part and operation, what is run; only "version" reads facts.
	Commands map[release.Part]map[string][]string
	Now      func() time.Time // the operator's clock; nil: Facts.Skew is not gathered
}

const (
	defaultVMMUnits = "kibotos-vmm-*.service"
	defaultStateDir = "/var/lib/kibo-rollout"
)

func (w Want) has(p release.Part) bool {
	for _, q := range w.Parts {
		if q == p {
			return true
		}
	}
	return false
}

func (w Want) vmmUnits() string {
	if w.VMMUnits == "" {
		return defaultVMMUnits
	}
	return w.VMMUnits
}

// currentRun is the file that names the unfinished run.
func (w Want) currentRun() string {
	dir := w.StateDir
	if dir == "" {
		dir = defaultStateDir
	}
	return path.Join(dir, "runs", "current")
}

func (w Want) versionArgv(p release.Part) []string {
	if argv := w.Commands[p]["version"]; len(argv) > 0 {
		return argv
	}
	return []string{p.Binary(), "version", "--json"}
}

// diskPaths lists every path whose file system matters, each with all directories above it: what is not there yet will be
// made in the deepest that is.
func (w Want) diskPaths() []string {
	paths := w.Paths
	if len(paths) == 0 {
		paths = []string{"/usr", "/var/lib/dpkg"}
		if w.StageDir != "" {
			paths = append(paths, w.StageDir)
		}
	}
	var out []string
	seen := map[string]bool{}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	for _, p := range paths {
		p = path.Clean(p)
		if !path.IsAbs(p) {
			continue
		}
		add("/")
		for i := 1; i < len(p); i++ {
			if p[i] == '/' {
				add(p[:i])
			}
		}
		add(p)
	}
	return out
}

// on finds the file system that a path is on, or will be on.
func on(disks []Disk, p string) (Disk, bool) {
	var best Disk
	found := false
	for _, d := range disks {
		under := d.Path == "/" || p == d.Path || strings.HasPrefix(p, d.Path+"/")
		if under && (!found || len(d.Path) > len(best.Path)) {
			best, found = d, true
		}
	}
	return best, found
}
