package host

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

func chmodProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-R", "", false)
	if o.bad != "" || len(o.args) < 2 {
		return m.usage(p, o)
	}
	mode, err := parseMode(o.args[0], 0)
	if err != nil {
		m.noteUnknown("chmod " + o.args[0])
		return p.Fail(1, "%v", err)
	}
	code := 0
	for _, name := range o.args[1:] {
		if err := m.fs.Chmod(p.Cred, p.Path(name), mode); err != nil {
			code = p.Fail(1, "cannot access '%s': %s", name, reason(err))
		}
	}
	return code
}

func chownProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-R -h", "", false)
	if o.bad != "" || len(o.args) < 2 {
		return m.usage(p, o)
	}
	owner, group, _ := strings.Cut(o.args[0], ":")
	if path.Base(p.Args[0]) == "chgrp" {
		owner, group = "", o.args[0]
	}
	u, ok := m.user(owner)
	g, gok := m.user(group)
	if (!ok && owner != "") || (!gok && group != "") {
		return p.Fail(1, "invalid user: '%s'", o.args[0])
	}
	code := 0
	for _, name := range o.args[1:] {
		uid, gid := u.uid, g.gid
		if info, err := m.fs.Stat(p.Cred, p.Path(name)); err == nil {
			if owner == "" {
				uid = int(info.Uid())
			}
			if group == "" {
				gid = int(info.Gid())
			}
		}
		if err := m.chown(p, p.Path(name), uid, gid, o.has("-R")); err != nil {
			code = p.Fail(1, "cannot access '%s': %s", name, reason(err))
		}
	}
	return code
}

func (m *Machine) chown(p *shell.Proc, at string, uid, gid int, deep bool) error {
	if err := m.fs.Chown(p.Cred, at, uid, gid); err != nil || !deep {
		return err
	}
	kids, err := m.fs.ReadDir(p.Cred, at)
	if err != nil {
		return nil // a file
	}
	for _, k := range kids {
		if err := m.chown(p, path.Join(at, k.Name()), uid, gid, true); err != nil {
			return err
		}
	}
	return nil
}

func readlinkProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-n -f -e -m -q", "", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	code := 0
	for _, name := range o.args {
		at := p.Path(name)
		target, err := m.fs.Readlink(p.Cred, at)
		if o.has("-f", "-e", "-m") && err != nil && (m.fs.Exists(at) || !o.has("-e")) {
			target, err = at, nil
		}
		if err != nil {
			code = 1
			continue
		}
		p.Printf("%s", target)
		if !o.has("-n") {
			p.Printf("\n")
		}
	}
	return code
}

func lsProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-1 -a -A -l -d", "", false)
	if o.bad != "" || o.has("-l") {
		m.noteUnknown("ls " + strings.Join(p.Args[1:], " "))
	}
	if len(o.args) == 0 {
		o.args = []string{"."}
	}
	code := 0
	for _, name := range o.args {
		info, err := m.fs.Stat(p.Cred, p.Path(name))
		if err == nil && (!info.IsDir() || o.has("-d")) {
			p.Printf("%s\n", name)
			continue
		}
		kids, err := m.fs.ReadDir(p.Cred, p.Path(name))
		if err != nil {
			code = p.Fail(2, "cannot access '%s': %s", name, reason(err))
		}
		for _, k := range kids {
			if !strings.HasPrefix(k.Name(), ".") || o.has("-a", "-A") {
				p.Printf("%s\n", k.Name())
			}
		}
	}
	return code
}

// statProgram is stat -c with the formats %a %u %g %U %G %s %n %F %Y.
func statProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-L", "-c --format", false)
	if o.bad != "" || !o.has("-c", "--format") {
		return m.usage(p, o)
	}
	code := 0
	for _, name := range o.args {
		info, err := m.fs.Lstat(p.Cred, p.Path(name))
		if o.has("-L") {
			info, err = m.fs.Stat(p.Cred, p.Path(name))
		}
		if err != nil {
			code = p.Fail(1, "cannot statx '%s': %s", name, reason(err))
			continue
		}
		p.Printf("%s\n", strings.NewReplacer(
			"%a", strconv.FormatUint(uint64(info.Mode().Perm()), 8), "%n", name,
			"%u", fmt.Sprint(info.Uid()), "%g", fmt.Sprint(info.Gid()), "%s", fmt.Sprint(info.Size()),
			"%U", m.userByID(int(info.Uid())), "%G", m.userByID(int(info.Gid())),
			"%F", kindOf(info), "%Y", fmt.Sprint(info.ModTime().Unix()),
		).Replace(o.get("-c", "--format")))
	}
	return code
}

func kindOf(i memfs.Info) string {
	switch {
	case i.IsDir():
		return "directory"
	case i.Mode()&fs.ModeSymlink != 0:
		return "symbolic link"
	case i.Size() == 0:
		return "regular empty file"
	}
	return "regular file"
}

// dfProgram is df -B1 --output=…: one disk, mounted at /.
func dfProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-P -k", "-B --output --block-size", false)
	if o.bad != "" || !o.has("--output") || o.get("-B", "--block-size") != "1" {
		m.noteUnknown("df " + strings.Join(p.Args[1:], " "))
		return p.Fail(1, "unrecognized option '%s'", o.bad)
	}
	bytes, inodes := m.fs.Free()
	value := map[string][2]string{
		"target": {"Mounted on", "/"}, "avail": {"Avail", fmt.Sprint(bytes)}, "iavail": {"IFree", fmt.Sprint(inodes)}, "itotal": {"Inodes", fmt.Sprint(int64(memfs.Inodes))},
		"size": {"1B-blocks", fmt.Sprint(m.fs.Size())}, "source": {"Filesystem", "/dev/vda1"}, "fstype": {"Type", "ext4"},
	}
	row := func(i int, file string) {
		var words []string
		for _, field := range strings.Split(o.get("--output"), ",") {
			v, ok := value[field]
			if field == "file" {
				v, ok = [2]string{"File", file}, true
			}
			if !ok {
				m.noteUnknown("df --output=" + field)
			}
			words = append(words, fmt.Sprintf("%12s", v[i]))
		}
		p.Printf("%s\n", strings.TrimLeft(strings.Join(words, " "), " "))
	}
	code, header := 0, false
	for _, name := range o.args {
		if _, err := m.fs.Stat(p.Cred, p.Path(name)); err != nil {
			code = p.Fail(1, "%s: %s", name, reason(err))
			continue
		}
		if !header {
			row(0, "")
			header = true
		}
		row(1, name)
	}
	return code
}

func cmpProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-s", "", false)
	if len(o.args) != 2 {
		return m.usage(p, o)
	}
	a, err := m.fs.ReadFile(p.Cred, p.Path(o.args[0]))
	b, berr := m.fs.ReadFile(p.Cred, p.Path(o.args[1]))
	switch {
	case err != nil || berr != nil:
		return 2
	case !bytes.Equal(a, b):
		return 1
	}
	return 0
}

// testProgram is test and [ as programs of their own, for sudo: the interpreter's builtin does the work.
func testProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	args := p.Args[1:]
	if path.Base(p.Args[0]) == "[" {
		if len(args) == 0 || args[len(args)-1] != "]" {
			return p.Fail(2, "missing ]")
		}
		args = args[:len(args)-1]
	}
	return shell.Text(ctx, m, p, "test", `test "$@"`, append([]string{"--"}, args...)...)
}
