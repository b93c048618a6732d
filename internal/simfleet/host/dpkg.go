package host

import (
	"bytes"
	"context"
	"crypto/md5" // dpkg's own checksums are MD5
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

func packagePrograms() map[string]program {
	return map[string]program{
		"dpkg": dpkgProgram, "dpkg-query": dpkgQueryProgram, "dpkg-deb": dpkgDebProgram, "apt-get": aptProgram,
		"adduser": adduserProgram, "useradd": adduserProgram, "deb-systemd-helper": okProgram,
		"systemd-sysusers": sysusersProgram, "systemd-tmpfiles": okProgram, "dpkg-maintscript-helper": okProgram,
	}
}

const dpkgInfo = "/var/lib/dpkg/info/"

func dpkgProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--audit -C --print-architecture -i --install --compare-versions --configure -a --force-confold --force-confdef", "", false)
	switch {
	case o.has("--print-architecture"):
		p.Printf("%s\n", Arch)
		return 0
	case o.has("--audit", "-C"):
		return m.audit(p)
	case o.has("-i", "--install"):
		return m.dpkgInstall(ctx, p, o.args)
	case o.has("--configure"):
		return 0
	case o.has("--compare-versions") && len(o.args) == 3:
		return compareVersions(p, o.args)
	}
	m.noteUnknown(strings.Join(p.Args, " "))
	return p.Fail(2, "error: unknown option %s", o.bad)
}

// audit prints packages in a bad state; nothing and exit 0 is clean.
func (m *Machine) audit(p *shell.Proc) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.packages)) {
		switch m.packages[name].State {
		case "installed", "config-files", "not-installed":
		default:
			p.Printf("The following packages are only half installed or configured:\n %s\n", name)
		}
	}
	return 0
}

// dpkgInstall is a plain dpkg -i, which no apt hook sees: only dpkg's own pre-invoke guards it.
func (m *Machine) dpkgInstall(ctx context.Context, p *shell.Proc, files []string) int {
	if p.Cred.UID != 0 {
		return p.Fail(2, "error: requested operation requires superuser privilege")
	}
	for _, name := range files {
		data, err := m.fs.ReadFile(p.Cred, p.Path(name))
		if err != nil {
			return p.Fail(1, "error: cannot access archive '%s': %s", name, reason(err))
		}
		d, err := m.w.debs.read(data)
		if err != nil {
			return p.Fail(1, "error processing archive %s (--install):\n %v", name, err)
		}
		if req, found := gated(d); found && m.dpkgHook() != "" {
			if v := m.gateVerdict(req); !v.Open && !m.jobOpened(req) {
				m.sayRefused(p, req, v)
				return p.Fail(2, "error: error executing hook '%s', exit code 256", m.dpkgHook())
			}
		}
		if err := m.install(ctx, p, name, d); err != nil {
			return p.Fail(1, "%v", err)
		}
	}
	return 0
}

// dpkgQueryProgram is dpkg-query -W -f FORMAT PACKAGE...
func dpkgQueryProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-W --show", "-f --showformat", false)
	if o.bad != "" || !o.has("-W", "--show") {
		return m.usage(p, o)
	}
	format := o.get("-f", "--showformat")
	if format == "" {
		format = `${binary:Package}\t${Version}\n`
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	names := o.args
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(m.packages))
	}
	code := 0
	for _, name := range names {
		pkg := m.packages[name]
		if pkg == nil {
			code = 1
			_, _ = fmt.Fprintf(p.Stderr, "dpkg-query: no packages found matching %s\n", name)
			continue
		}
		m.printPackage(p, format, pkg)
	}
	return code
}

func (m *Machine) printPackage(p *shell.Proc, format string, pkg *Package) {
	abbrev := map[string]string{"installed": "i", "config-files": "c", "unpacked": "U", "half-configured": "F", "half-installed": "H"}
	s := strings.NewReplacer(
		"${Package}", pkg.Name, "${binary:Package}", pkg.Name, "${Version}", pkg.Version, "${Architecture}", Arch,
		"${db:Status-Status}", pkg.State, "${db:Status-Want}", pkg.Want, "${db:Status-Eflag}", "ok",
		"${Status}", pkg.Want+" ok "+pkg.State,
		"${db:Status-Abbrev}", pkg.Want[:1]+abbrev[pkg.State]+" ",
		`\t`, "\t", `\n`, "\n", `\\`, `\`,
	).Replace(format)
	if i := strings.Index(s, "${"); i >= 0 {
		m.unknown = append(m.unknown, "dpkg-query format "+s[i:])
	}
	_, _ = io.WriteString(p.Stdout, s)
}

// dpkgDebProgram is dpkg-deb -x DEB DIR, -f DEB [FIELD...], -I and -c in short.
func dpkgDebProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-x --extract -f --field -c --contents", "", false)
	if o.bad != "" || len(o.args) == 0 {
		return m.usage(p, o)
	}
	data, err := m.fs.ReadFile(p.Cred, p.Path(o.args[0]))
	if err != nil {
		return p.Fail(2, "error: failed to read archive '%s': %s", o.args[0], reason(err))
	}
	d, err := m.w.debs.read(data)
	if err != nil {
		return p.Fail(2, "error: '%s' %v", o.args[0], err)
	}
	switch {
	case o.has("-f", "--field"):
		m.printFields(p, d, o.args[1:])
		return 0
	case o.has("-c", "--contents"):
		for _, e := range d.files {
			p.Printf("%s ./%s\n", e.mode, strings.TrimPrefix(e.name, "/"))
		}
		return 0
	case len(o.args) != 2:
		return p.Fail(2, "error: --extract needs a target directory")
	}
	m.w.Sleep(ctx, m.w.Lat.Unpack)
	dir := p.Path(o.args[1])
	if !m.fs.Exists(dir) {
		err = m.fs.Mkdir(p.Cred, dir, 0o755)
	}
	if err == nil {
		err = d.unpack(m, p.Cred, dir, nil)
	}
	if err != nil {
		return p.Fail(2, "error: tar subprocess returned error exit status 2: %s", reason(err))
	}
	return 0
}

func (m *Machine) printFields(p *shell.Proc, d *debFile, names []string) {
	if len(names) == 1 {
		p.Printf("%s\n", d.control[names[0]])
		return
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(d.control))
	}
	for _, n := range names {
		if v, ok := d.control[n]; ok {
			p.Printf("%s: %s\n", n, v)
		}
	}
}

// record writes what dpkg keeps of a package under its info directory.
func (m *Machine) record(d *debFile) error {
	root := memfs.Cred{}
	base := dpkgInfo + d.control["Package"]
	sums := d.md5sums
	if sums == nil {
		var b bytes.Buffer
		for _, e := range d.files {
			if e.mode.IsRegular() && !slices.Contains(d.conf, e.name) {
				_, _ = fmt.Fprintf(&b, "%x  %s\n", md5.Sum(e.data), strings.TrimPrefix(e.name, "/")) // dpkg's own
			}
		}
		sums = b.Bytes()
	}
	var list strings.Builder
	list.WriteString("/.\n")
	for _, e := range d.files {
		list.WriteString(e.name + "\n")
	}
	for name, data := range map[string][]byte{"md5sums": sums, "list": []byte(list.String())} {
		if err := m.fs.WriteFile(root, base+"."+name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func adduserProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--system --group --quiet --no-create-home --disabled-login --disabled-password --user-group -r -M -U --force-badname --allow-bad-names",
		"--home --shell --gecos --ingroup --comment --home-dir -d -s -g", false)
	if o.bad != "" || len(o.args) == 0 {
		return m.usage(p, o)
	}
	if p.Cred.UID != 0 {
		return p.Fail(1, "Only root may add a user or group to the system.")
	}
	m.addUser(o.args[0], orDefault(o.get("--home", "--home-dir", "-d"), "/nonexistent"))
	return 0
}

// sysusersProgram makes the users that the given files of /usr/lib/sysusers.d name.
func sysusersProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	for _, name := range p.Args[1:] {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if !strings.Contains(name, "/") {
			name = path.Join("/usr/lib/sysusers.d", name)
		}
		data, err := m.fs.ReadFile(memfs.Cred{}, name)
		if err != nil {
			return p.Fail(1, "Failed to open '%s': %s", name, reason(err))
		}
		for _, line := range lines(data) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "u" {
				m.addUser(f[1], "/nonexistent")
			}
		}
	}
	return 0
}
