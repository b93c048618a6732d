package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

const exitApt = 100

// aptFail prints the way apt does and returns its one exit status for failure.
func aptFail(p *shell.Proc, format string, a ...any) int {
	_, _ = fmt.Fprintf(p.Stderr, "E: "+format+"\n", a...)
	return exitApt
}

// aptProgram is apt-get install of package files by their absolute paths.
func aptProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-y --yes -q -qq --no-remove --no-install-recommends --reinstall --allow-downgrades --allow-change-held-packages -s",
		"-o --option", false)
	if o.bad != "" || len(o.args) == 0 {
		m.noteUnknown(strings.Join(p.Args, " "))
		return aptFail(p, "Command line option %s is not understood in combination with the other options", o.bad)
	}
	if o.args[0] == "update" || o.args[0] == "clean" {
		return 0
	}
	if o.args[0] != "install" {
		m.noteUnknown(strings.Join(p.Args, " "))
		return aptFail(p, "Invalid operation %s", o.args[0])
	}
	if p.Cred.UID != 0 {
		_, _ = fmt.Fprintln(p.Stderr, "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)")
		return aptFail(p, "Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?")
	}
	if code := m.aptLock(ctx, p, o); code != 0 {
		return code
	}
	defer m.apt.Unlock()
	return m.aptInstall(ctx, p, o)
}

// aptLock takes the frontend lock and waits as long as DPkg::Lock::Timeout says.
func (m *Machine) aptLock(ctx context.Context, p *shell.Proc, o options) int {
	wait := 0
	for _, v := range append(o.set["-o"], o.set["--option"]...) {
		if n, ok := strings.CutPrefix(v, "DPkg::Lock::Timeout="); ok {
			wait, _ = strconv.Atoi(n)
		}
	}
	const step = 100 * time.Millisecond
	for left := time.Duration(wait) * time.Second; ; left -= step {
		if !m.Faults().AptLocked && m.apt.TryLock() {
			return 0
		}
		if left <= 0 || ctx.Err() != nil {
			_, _ = fmt.Fprintln(p.Stderr, "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt-get)")
			return aptFail(p, "Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?")
		}
		m.w.Sleep(ctx, step)
	}
}

type upgrade struct {
	file string
	deb  *debFile
}

func (m *Machine) aptInstall(ctx context.Context, p *shell.Proc, o options) int {
	var todo []upgrade
	for _, name := range o.args[1:] {
		if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "./") {
			return aptFail(p, "Unable to locate package %s", name)
		}
		data, err := m.fs.ReadFile(p.Cred, p.Path(name))
		if err != nil {
			return aptFail(p, "Unsupported file %s given on commandline", name)
		}
		d, err := m.w.debs.read(data)
		if err != nil {
			return aptFail(p, "Invalid archive: %s: %v", name, err)
		}
		if arch := d.control["Architecture"]; arch != Arch && arch != "all" {
			return aptFail(p, "Unable to correct problems: %s:%s is of an architecture that this system does not have", d.control["Package"], arch)
		}
		wanted, code := m.aptWants(p, o, d)
		if code != 0 {
			return code
		}
		if wanted {
			todo = append(todo, upgrade{p.Path(name), d})
		}
	}
	if len(todo) == 0 || o.has("-s") {
		return 0
	}
	if code := m.aptGate(p, todo); code != 0 {
		return code
	}
	// apt gives dpkg a terminal of its own: everything that it says is on standard output, with a terminal's line ends.
	dpkg := *p
	dpkg.Stdout = &crlf{w: p.Stdout}
	dpkg.Stderr = dpkg.Stdout
	for _, u := range todo {
		m.w.Sleep(ctx, m.w.Lat.Install)
		if err := m.install(ctx, &dpkg, u.file, u.deb); err != nil {
			dpkg.Printf("dpkg: %v\nErrors were encountered while processing:\n %s\n", err, u.file)
			return aptFail(p, "Sub-process /usr/bin/dpkg returned an error code (1)")
		}
	}
	return 0
}

// aptWants tells whether there is something to do for the package file.
func (m *Machine) aptWants(p *shell.Proc, o options, d *debFile) (bool, int) {
	name, version := d.control["Package"], d.control["Version"]
	old, ok := m.Installed(name)
	if !ok || old.State != "installed" {
		return true, 0
	}
	if old.Want == "hold" && !o.has("--allow-change-held-packages") {
		return false, aptFail(p, "Held packages were changed and -y was used without --allow-change-held-packages.")
	}
	order, err := release.CompareDebian(version, old.Version)
	switch {
	case err != nil:
		return false, aptFail(p, "%v", err)
	case order == 0 && !o.has("--reinstall"):
		p.Printf("%s is already the newest version (%s).\n", name, version)
		return false, 0
	case order < 0 && !o.has("--allow-downgrades"):
		return false, aptFail(p, "Packages were downgraded and -y was used without --allow-downgrades.")
	}
	return true, 0
}

// aptGate is the hook DPkg::Pre-Install-Pkgs of kibo-agent: it answers for Kibotos packages only.
func (m *Machine) aptGate(p *shell.Proc, todo []upgrade) int {
	var debs []*debFile
	for _, u := range todo {
		debs = append(debs, u.deb)
	}
	req, found := gated(debs...)
	if !found || m.aptHook() == "" {
		return 0
	}
	if v := m.gateVerdict(req); !v.Open && !m.jobOpened(req) {
		m.sayRefused(p, req, v)
		_, _ = fmt.Fprintln(p.Stderr, "E: Sub-process /usr/bin/kibo-agent apt-hook returned an error code (1)")
		return aptFail(p, "Failure running script /usr/bin/kibo-agent apt-hook")
	}
	return 0
}

// install unpacks and configures one package as dpkg does, maintainer scripts included.
func (m *Machine) install(ctx context.Context, p *shell.Proc, file string, d *debFile) error {
	name, version := d.control["Package"], d.control["Version"]
	old, had := m.Installed(name)
	script := func(scripts map[string]string, which string, args ...string) error {
		return m.maintainer(ctx, p, name, scripts[which], which, args...)
	}
	failed := func(err error) error { return fmt.Errorf("error processing archive %s (--unpack):\n %w", file, err) }
	if had && old.State == "installed" {
		p.Printf("Preparing to unpack %s ...\n", path.Base(file))
		if err := script(old.scripts, "prerm", "upgrade", version); err != nil {
			return failed(err)
		}
		if err := script(d.scripts, "preinst", "upgrade", old.Version, version); err != nil {
			return failed(errors.Join(err, script(old.scripts, "postinst", "abort-upgrade", version)))
		}
	} else if err := script(d.scripts, "preinst", "install"); err != nil {
		return failed(err)
	}
	p.Printf("Unpacking %s (%s) ...\n", name, version)
	if err := m.unpackOver(d, old); err != nil {
		m.setPackage(d, "half-installed")
		return failed(fmt.Errorf("cannot copy extracted data: %s", reason(err)))
	}
	if had {
		if err := script(old.scripts, "postrm", "upgrade", version); err != nil {
			return failed(err)
		}
	}
	m.setPackage(d, "unpacked")
	p.Printf("Setting up %s (%s) ...\n", name, version)
	configure := []string{"configure"}
	if had {
		configure = append(configure, old.Version)
	}
	if err := script(d.scripts, "postinst", configure...); err != nil {
		m.setPackage(d, "half-configured")
		return fmt.Errorf("error processing package %s (--configure):\n %w", name, err)
	}
	m.setPackage(d, "installed")
	return nil
}

// unpackOver replaces files. Configuration that is there stays (--force-confold); files of the old package that the
// new one does not have go away.
func (m *Machine) unpackOver(d *debFile, old Package) error {
	root := memfs.Cred{}
	before := map[string]bool{}
	for _, e := range d.files {
		before[e.name] = m.fs.Exists(e.name)
	}
	err := d.unpack(m, root, "/", func(e debEntry) bool {
		return slices.Contains(d.conf, e.name) && before[e.name]
	})
	if err != nil {
		return err
	}
	var files []string
	for _, e := range d.files {
		if e.mode.IsRegular() {
			files = append(files, e.name)
			if before[e.name] {
				m.replaced(e.name)
			}
		}
	}
	for _, f := range old.files {
		if !slices.Contains(files, f) && !slices.Contains(old.conf, f) {
			if err := m.fs.Remove(root, f); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return m.record(d)
}

func (m *Machine) setPackage(d *debFile, state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := d.control["Package"]
	pkg := &Package{Name: name, Version: d.control["Version"], State: state, Want: "install", scripts: d.scripts, conf: d.conf}
	for _, e := range d.files {
		if e.mode.IsRegular() {
			pkg.files = append(pkg.files, e.name)
		}
	}
	m.packages[name] = pkg
}

// maintainer runs a package's own script with the machine's shell.
func (m *Machine) maintainer(ctx context.Context, p *shell.Proc, pkg, text, which string, args ...string) error {
	if text == "" {
		return nil
	}
	q := *p
	q.Dir, q.Stdin = "/", strings.NewReader("")
	q.Env = append(slices.Clone(p.Env), "DPKG_MAINTSCRIPT_NAME="+which, "DPKG_MAINTSCRIPT_PACKAGE="+pkg)
	q.Args = append([]string{which}, args...)
	opts := []string{"--"}
	if strings.Contains(text, "set -e") || strings.HasPrefix(text, "#!/bin/sh -e") {
		opts = []string{"-e", "--"}
	}
	if code := shell.Text(ctx, m, &q, which, text, append(opts, args...)...); code != 0 {
		return fmt.Errorf("new %s package %s script subprocess returned error exit status %d", pkg, which, code)
	}
	return nil
}

func compareVersions(p *shell.Proc, args []string) int {
	order, err := release.CompareDebian(args[0], args[2])
	if err != nil {
		return p.Fail(2, "error: %v", err)
	}
	ok, known := map[string]bool{
		"lt": order < 0, "le": order <= 0, "eq": order == 0, "ne": order != 0, "ge": order >= 0, "gt": order > 0,
		"lt-nl": order < 0, "<<": order < 0, ">>": order > 0,
	}[args[1]]
	if !known {
		return p.Fail(2, "error: --compare-versions bad relation")
	}
	if ok {
		return 0
	}
	return 1
}
