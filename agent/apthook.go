package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// maxHookLine bounds one line of what apt sends; configuration lines are the long ones.
const maxHookLine = 1 << 20

// ReadAptHook reads what apt sends to a DPkg::Pre-Install-Pkgs hook, to its end, and returns what is to be done
// to gated packages. Protocol 3 is what the hook is set up for. In any other form it looks for gated packages
// as well as it can: seen there, they are unclear and so refused; a transaction without any is not held up.
func ReadAptHook(r io.Reader, control func(deb string) (Control, error)) (Change, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), maxHookLine)
	c := newChange()
	version, actions, first := "", false, true
	for sc.Scan() {
		line := sc.Text()
		switch {
		case first && strings.HasPrefix(line, "VERSION "):
			version = strings.TrimPrefix(line, "VERSION ")
		case version == "":
			c.debLine(line, control)
		case !actions:
			actions = line == ""
		case version == "3":
			c.line3(line)
		default:
			c.lineOther(version, line)
		}
		first = false
	}
	if err := sc.Err(); err != nil {
		// Reading goes on so that apt does not die of a closed pipe before it sees the answer.
		_, _ = io.Copy(io.Discard, r)
		return c, fmt.Errorf("cannot read what apt sent: %w", err)
	}
	return c, nil
}

// line3 reads one action of protocol 3: name, old version, arch and multi-arch, direction, the same three of
// the new version, and the action. A package has one line for unpacking or removing and one for configuring;
// configuring what is unpacked already is not the gate's business.
func (c *Change) line3(line string) {
	fields := strings.SplitN(line, " ", 9)
	name := fields[0]
	if !Gated(name) {
		return
	}
	if len(fields) != 9 {
		c.Unclear = append(c.Unclear, fmt.Sprintf("cannot understand apt's line %q", printable(line)))
		return
	}
	oldVersion, newVersion, action := fields[1], fields[5], fields[8]
	switch {
	case action == "**CONFIGURE**":
	case action == "**REMOVE**":
		c.Remove[name] = oldVersion
	case filepath.IsAbs(action) && newVersion != "-":
		c.install(name, newVersion, action)
	default:
		c.Unclear = append(c.Unclear, fmt.Sprintf("cannot understand action %q for %s", printable(action), name))
	}
}

// lineOther looks at an action of a protocol that was not asked for.
func (c *Change) lineOther(version, line string) {
	name, _, _ := strings.Cut(line, " ")
	if Gated(name) && !strings.HasSuffix(line, "**CONFIGURE**") {
		c.Unclear = append(c.Unclear, fmt.Sprintf("apt speaks protocol %s of its hooks, not 3, and says %q", printable(version), printable(line)))
	}
}

// debLine looks at one line of protocol 1, which is nothing but the path of a .deb. Removals are not in it at
// all, so dpkg's hook has to stop those.
func (c *Change) debLine(path string, control func(string) (Control, error)) {
	if path == "" {
		return
	}
	ctl, err := control(path)
	switch {
	case Gated(filepath.Base(path)), err == nil && Gated(ctl.Package):
		c.Unclear = append(c.Unclear, fmt.Sprintf("apt speaks protocol 1 of its hooks, not 3, and is about to unpack %s", printable(path)))
	case err != nil:
		c.Unclear = append(c.Unclear, fmt.Sprintf("apt speaks protocol 1 of its hooks, not 3, and what is in %s cannot be told: %v", printable(path), err))
	}
}

// Control is of a .deb's control data what the gate needs.
type Control struct {
	Package, Version string
	Displaces        []string // gated packages that it conflicts with, breaks or replaces
}

// errNotDeb: the file cannot be unpacked by dpkg either.
var errNotDeb = errors.New("is no .deb that dpkg-deb can read")
