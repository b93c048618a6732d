package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// gated is what a change to package files asks the gate: only those of Kibotos count.
func gated(debs ...*debFile) (gate.Request, bool) {
	req := gate.Request{Operation: gate.OpInstall, Packages: map[string]string{}}
	for _, d := range debs {
		if name := d.control["Package"]; strings.HasPrefix(name, "kibotos-") {
			req.Packages[name] = d.control["Version"]
			req.SHA256 = append(req.SHA256, d.sum)
		}
	}
	return req, len(req.Packages) > 0
}

// hookIn finds the first file in a directory that names the program of a hook.
func (m *Machine) hookIn(dir, word string) string {
	infos, err := m.fs.ReadDir(memfs.Cred{}, dir)
	if err != nil {
		return ""
	}
	for _, i := range infos {
		data, err := m.fs.ReadFile(memfs.Cred{}, path.Join(dir, i.Name()))
		if err == nil && strings.Contains(string(data), word) {
			return path.Join(dir, i.Name())
		}
	}
	return ""
}

func (m *Machine) aptHook() string  { return m.hookIn("/etc/apt/apt.conf.d", "kibo-agent") }
func (m *Machine) dpkgHook() string { return m.hookIn("/etc/dpkg/dpkg.cfg.d", "kibo-agent") }

// gateVerdict reads the allow-file and lets the gate decide, with the machine's clock.
func (m *Machine) gateVerdict(req gate.Request) gate.Verdict {
	f, err := m.allowFile(gate.DefaultPath)
	return m.here().Decide(f, err, req)
}

// allowFile reads an allow-file and demands what the gate demands of it: a regular file of root, 0644, below
// directories that only root can write (Z2).
func (m *Machine) allowFile(name string) (gate.AllowFile, error) {
	info, err := m.fs.Lstat(memfs.Cred{}, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gate.AllowFile{}, gate.Deny(gate.CodeMissing, "there is no %s", name)
	case err != nil:
		return gate.AllowFile{}, gate.Deny(gate.CodeUnreadable, "cannot read allow-file: %v", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return gate.AllowFile{}, gate.Deny(gate.CodeSymlink, "%s is a symbolic link", name)
	case !info.Mode().IsRegular():
		return gate.AllowFile{}, gate.Deny(gate.CodeNotRegular, "%s is not a regular file", name)
	case info.Uid() != 0 || info.Gid() != 0:
		return gate.AllowFile{}, gate.Deny(gate.CodeOwner, "%s belongs to %d:%d, not to root:root", name, info.Uid(), info.Gid())
	case info.Mode().Perm() != 0o644:
		return gate.AllowFile{}, gate.Deny(gate.CodeMode, "%s has mode %04o, not 0644", name, info.Mode().Perm())
	case info.Size() > gate.MaxSize:
		return gate.AllowFile{}, gate.Deny(gate.CodeTooBig, "%s is larger than %d bytes", name, gate.MaxSize)
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		d, err := m.fs.Lstat(memfs.Cred{}, dir)
		switch {
		case err != nil:
			return gate.AllowFile{}, gate.Deny(gate.CodeUnreadable, "cannot read %s: %v", dir, err)
		case d.Mode()&fs.ModeSymlink != 0:
			return gate.AllowFile{}, gate.Deny(gate.CodeSymlink, "%s is a symbolic link", dir)
		case d.Uid() != 0:
			return gate.AllowFile{}, gate.Deny(gate.CodeDirOwner, "%s does not belong to root", dir)
		case d.Mode().Perm()&0o022 != 0:
			return gate.AllowFile{}, gate.Deny(gate.CodeDirWritable, "%s is writable for others than root", dir)
		}
		if dir == "/" {
			break
		}
	}
	data, err := m.fs.ReadFile(memfs.Cred{}, name)
	if err != nil {
		return gate.AllowFile{}, gate.Deny(gate.CodeUnreadable, "cannot read allow-file: %v", err)
	}
	return gate.Parse(data)
}

// Gate answers the question whether a window is open on the machine, and returns the allow-file if it can be read.
func (m *Machine) Gate() (gate.Verdict, *gate.AllowFile) {
	f, err := m.allowFile(gate.DefaultPath)
	v := m.here().Decide(f, err, gate.Request{})
	if err != nil {
		return v, nil
	}
	return v, &f
}

// sayRefused prints what a hook says to the person who called apt-get or dpkg.
func (m *Machine) sayRefused(p *shell.Proc, req gate.Request, v gate.Verdict) {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(req.Packages)) {
		words = append(words, name+" "+req.Packages[name])
	}
	_, _ = fmt.Fprintf(p.Stderr, "kibo-agent: refused: install %s\n  because: %s\n  next: kibo-agent status\n", strings.Join(words, ", "), v.Reason)
}
