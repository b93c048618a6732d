package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		return d.installs(call, d.Procs.cwd(pid))
	}
	return d.removes(call)
}

// call finds the nearest dpkg above.
func (d Dpkg) call() (int, []string, error) {
	up, err := d.Procs.ancestors(d.PID)
	for _, p := range up {
		if p.name != "dpkg" {
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

func (d Dpkg) installs(call DpkgCall, cwd string) (Change, error) {
	c := newChange()
	for _, operand := range call.Operands {
		path := operand
		if !filepath.IsAbs(path) {
			path = cwd + "/" + path // not cleaned: cwd is a link, and ".." after it must be resolved by the kernel
		}
		debs, err := debsAt(path, call.Recursive)
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
				c.Install[ctl.Package] = ctl.Version
				c.Debs = append(c.Debs, deb)
			}
		}
	}
	return c, nil
}

// debsAt lists the .debs at one operand. What does not exist is left to dpkg to complain about.
func debsAt(path string, recursive bool) ([]string, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot look at %s: %w", path, err)
	case st.Mode().IsRegular():
		return []string{path}, nil
	case !st.IsDir() || !recursive:
		return nil, nil
	}
	var debs []string
	// The trailing slash makes a link to a directory be walked, as dpkg does.
	err = filepath.WalkDir(path+"/", func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(p, ".deb") {
			debs = append(debs, p)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot look through %s: %w", path, err)
	}
	return debs, nil
}

func (d Dpkg) removes(call DpkgCall) (Change, error) {
	c := newChange()
	names := map[string]bool{}
	for _, operand := range call.Operands {
		name, _, _ := strings.Cut(operand, ":") // "name:arch"
		names[name] = Gated(name)
	}
	if !call.Pending && !slices.ContainsFunc(call.Operands, func(o string) bool { return Gated(o) }) {
		return c, nil
	}
	installed, err := d.Installed()
	if err != nil {
		return c, err
	}
	for _, p := range installed {
		marked := call.Pending && (p.Want == "deinstall" || p.Want == "purge")
		// Of a package in state config-files only the configuration is left: nothing that runs goes away.
		if Gated(p.Name) && (names[p.Name] || marked) && p.Status != "not-installed" && p.Status != "config-files" {
			c.Remove[p.Name] = p.Version
		}
	}
	return c, nil
}
