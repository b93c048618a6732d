package agent

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// DpkgCall is a dpkg command line as far as the gate needs it.
type DpkgCall struct {
	Recursive bool     // operands may be directories that hold .debs
	Pending   bool     // every package marked so, instead of operands
	Operands  []string // .debs or package names
}

// dpkgValued are the options of dpkg that take a value, in the same word after "=" or in the next word.
func dpkgValued() []string {
	return []string{"admindir", "instdir", "root", "log", "status-fd", "status-logger", "debug", "ignore-depends",
		"abort-after", "pre-invoke", "post-invoke", "path-exclude", "path-include", "verify-format", "command-fd"}
}

// ReadDpkgArgs reads a dpkg command line, without the program's name. It errs to the side of taking a word
// for an operand.
func ReadDpkgArgs(args []string) DpkgCall {
	var c DpkgCall
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			c.Operands = append(c.Operands, args[i+1:]...)
			return c
		case arg == "--recursive":
			c.Recursive = true
		case arg == "--pending":
			c.Pending = true
		case strings.HasPrefix(arg, "--"):
			name, _, hasValue := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if !hasValue && slices.Contains(dpkgValued(), name) {
				i++
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			if arg == "-D" {
				i++
			}
			c.Recursive = c.Recursive || strings.Contains(arg, "R")
			c.Pending = c.Pending || strings.Contains(arg, "a")
		case arg != "":
			c.Operands = append(c.Operands, arg)
		}
	}
	return c
}

// Dpkg finds out what the dpkg above the hook is about to do.
type Dpkg struct {
	Procs     Procs
	PID       int // of the hook's own process
	Control   func(deb string) (Control, error)
	Installed func() ([]Package, error)
}

// Change returns what the dpkg above does to gated packages. action is what dpkg calls it in
// DPKG_HOOK_ACTION; actions that neither unpack nor remove, such as configuring what is unpacked, are not the
// gate's business.
func (d Dpkg) Change(action string) (Change, error) {
	installs := slices.Contains([]string{"install", "unpack"}, action)
	removes := slices.Contains([]string{"remove", "purge"}, action)
	if !installs && !removes {
		return newChange(), nil
	}
	pid, args, err := d.call()
	if err != nil {
		return d.blind(err)
	}
	call := ReadDpkgArgs(args)
	if installs {
		return d.installs(call, pid)
	}
	return d.removes(call)
}

// call finds the dpkg that called: what is above the hook's script, whatever that dpkg is called here, or else
// the nearest one of that name.
func (d Dpkg) call() (int, []string, error) {
	up, err := d.Procs.ancestors(d.PID)
	for i, p := range up {
		if p.name != "dpkg" && (i == 0 || up[i-1].name != filepath.Base(DpkgHookPath)) {
			continue
		}
		argv, err := d.Procs.argv(p.PID)
		if err != nil {
			return 0, nil, err
		}
		return p.PID, argv[min(1, len(argv)):], nil
	}
	return 0, nil, errors.Join(errors.New("cannot find the dpkg that called this hook"), err)
}

// blind decides without dpkg's command line, say where /proc is not mounted: a host that has gated packages
// refuses, since this could be about them; one that has none is not held up.
func (d Dpkg) blind(cause error) (Change, error) {
	c := newChange()
	installed, err := d.Installed()
	if err != nil {
		return c, errors.Join(cause, err)
	}
	if slices.ContainsFunc(installed, func(p Package) bool { return Gated(p.Name) && p.Status != "not-installed" }) {
		c.Unclear = append(c.Unclear, cause.Error()+", and there are kibotos packages on this host")
	}
	return c, nil
}

func (d Dpkg) installs(call DpkgCall, pid int) (Change, error) {
	c := newChange()
	displaced := map[string]bool{}
	for _, operand := range call.Operands {
		debs, err := debsAt(d.Procs.seenBy(pid, operand), call.Recursive)
		if errors.Is(err, errNoFile) {
			c.Unclear = append(c.Unclear, err.Error())
			continue
		}
		if err != nil {
			return c, err
		}
		for _, deb := range debs {
			ctl, err := d.Control(deb)
			switch {
			case err != nil:
				// dpkg will not be able to unpack it either; until then nobody knows what it is.
				c.Unclear = append(c.Unclear, err.Error())
			case Gated(ctl.Package):
				c.install(ctl.Package, ctl.Version, deb)
			default:
				for _, name := range ctl.Displaces {
					displaced[name] = true
				}
			}
		}
	}
	if len(displaced) == 0 {
		return c, nil
	}
	// dpkg removes, deconfigures or empties what another package takes the place of, without being told to.
	return c, d.removed(&c, func(p Package) bool { return displaced[p.Name] })
}

// removed adds the gated packages on this host that match.
func (d Dpkg) removed(c *Change, match func(Package) bool) error {
	installed, err := d.Installed()
	if err != nil {
		return err
	}
	for _, p := range installed {
		// Of a package in state config-files only the configuration is left: nothing that runs goes away.
		if Gated(p.Name) && match(p) && p.Status != "not-installed" && p.Status != "config-files" {
			c.Remove[p.Name] = p.Version
		}
	}
	return nil
}

func (d Dpkg) removes(call DpkgCall) (Change, error) {
	c := newChange()
	names := map[string]bool{}
	for _, operand := range call.Operands {
		name, _, _ := strings.Cut(operand, ":") // "name:arch"
		name = strings.ToLower(name)            // as dpkg reads names
		names[name] = Gated(name)
	}
	if !call.Pending && !slices.Contains(slices.Collect(maps.Values(names)), true) {
		return c, nil
	}
	return c, d.removed(&c, func(p Package) bool {
		return names[p.Name] || call.Pending && (p.Want == "deinstall" || p.Want == "purge")
	})
}
