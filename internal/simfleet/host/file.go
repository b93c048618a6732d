package host

import (
	"context"
	"crypto/md5" // dpkg's own checksums are MD5
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// filePrograms work on the disk.
func filePrograms() map[string]program {
	return map[string]program{
		"mkdir": mkdirProgram, "install": installProgram, "touch": touchProgram, "rm": rmProgram,
		"rmdir": rmdirProgram, "cp": cpProgram, "mv": mvProgram, "ln": lnProgram, "chmod": chmodProgram,
		"chown": chownProgram, "chgrp": chownProgram, "readlink": readlinkProgram, "ls": lsProgram, "stat": statProgram,
		"dd": ddProgram, "df": dfProgram, "test": testProgram, "[": testProgram, "cmp": cmpProgram,
		"sha256sum": sumProgram("sha256sum", sha256.New), "md5sum": sumProgram("md5sum", md5.New),
		"sync": okProgram,
	}
}

func okProgram(context.Context, *Machine, *shell.Proc) int { return 0 }

// write puts data into a file as the process's user, at its end or in place of what is there.
func (m *Machine) write(p *shell.Proc, name string, data []byte, atEnd bool) error {
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if atEnd {
		flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	f, err := m.fs.Open(p.Cred, p.Path(name), flag, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return err
}

// usage is the answer to an option that the program does not know, here or at all.
func (m *Machine) usage(p *shell.Proc, o options) int {
	m.noteUnknown(path.Base(p.Args[0]) + " " + o.bad)
	return p.Fail(1, "unrecognized option '%s'", o.bad)
}

func parseMode(s string, fallback fs.FileMode) (fs.FileMode, error) {
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.ParseUint(s, 8, 12)
	if err != nil {
		return 0, fmt.Errorf("invalid mode: '%s'", s)
	}
	mode := fs.FileMode(n & 0o777)
	if n&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode, nil
}

func mkdirProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-p --parents -v", "-m --mode", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	mode, err := parseMode(o.get("-m", "--mode"), 0o755)
	if err != nil {
		return p.Fail(1, "%v", err)
	}
	code := 0
	for _, name := range o.args {
		at := p.Path(name)
		if o.has("-p", "--parents") {
			if i, err := m.fs.Stat(p.Cred, at); err == nil && i.IsDir() {
				continue
			}
			err = m.fs.MkdirAll(p.Cred, path.Dir(at), 0o755)
		}
		if err == nil {
			err = m.fs.Mkdir(p.Cred, at, mode)
		}
		if err != nil {
			code = p.Fail(1, "cannot create directory '%s': %s", name, reason(err))
			err = nil
		}
	}
	return code
}

func installProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-d -D -T -p -C", "-o -g -m -t", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	mode, err := parseMode(o.get("-m"), 0o755)
	if err != nil {
		return p.Fail(1, "%v", err)
	}
	uid, gid := p.Cred.UID, p.Cred.GID
	for opt, id := range map[string]*int{"-o": &uid, "-g": &gid} {
		if name := o.get(opt); name != "" {
			u, ok := m.user(name)
			if !ok {
				return p.Fail(1, "invalid user '%s'", name)
			}
			if *id = u.uid; opt == "-g" {
				*id = u.gid
			}
		}
	}
	set := func(at string) error {
		if err := m.fs.Chmod(p.Cred, at, mode); err != nil || (uid == p.Cred.UID && gid == p.Cred.GID) {
			return err
		}
		return m.fs.Chown(p.Cred, at, uid, gid)
	}
	if o.has("-d") {
		for _, name := range o.args {
			if err := errors.Join(m.fs.MkdirAll(p.Cred, p.Path(name), 0o755), set(p.Path(name))); err != nil {
				return p.Fail(1, "cannot create directory '%s': %s", name, reason(err))
			}
		}
		return 0
	}
	if len(o.args) != 2 {
		return p.Fail(1, "missing file operand")
	}
	to, err := m.copyFile(p, o.args[0], o.args[1])
	if err == nil {
		err = set(to)
	}
	if err != nil {
		return p.Fail(1, "cannot create regular file '%s': %s", o.args[1], reason(err))
	}
	return 0
}

// copyFile copies the content of one file to another, or into a directory, and returns where it is.
func (m *Machine) copyFile(p *shell.Proc, from, to string) (string, error) {
	data, err := m.fs.ReadFile(p.Cred, p.Path(from))
	if err != nil {
		return "", err
	}
	at := p.Path(to)
	if i, err := m.fs.Stat(p.Cred, at); err == nil && i.IsDir() {
		at = path.Join(at, path.Base(from))
	}
	return at, m.fs.WriteFile(p.Cred, at, data, 0o644)
}

func cpProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-p -f -a -r -R -T", "", false)
	if o.bad != "" || len(o.args) != 2 {
		return m.usage(p, o)
	}
	from, err := m.fs.Stat(p.Cred, p.Path(o.args[0]))
	if err != nil {
		return p.Fail(1, "cannot stat '%s': %s", o.args[0], reason(err))
	}
	if from.IsDir() {
		m.noteUnknown("cp of a directory")
		return p.Fail(1, "-r not specified; omitting directory '%s'", o.args[0])
	}
	at, err := m.copyFile(p, o.args[0], o.args[1])
	if err == nil && o.has("-p", "-a") {
		err = m.fs.Chmod(p.Cred, at, from.Mode())
		if err == nil {
			err = m.fs.Chtimes(p.Cred, at, from.ModTime())
		}
		if err == nil && p.Cred.UID == 0 {
			err = m.fs.Chown(p.Cred, at, int(from.Uid()), int(from.Gid()))
		}
	}
	if err != nil {
		return p.Fail(1, "cannot create regular file '%s': %s", o.args[1], reason(err))
	}
	return 0
}

func mvProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-f -T -n", "", false)
	if o.bad != "" || len(o.args) != 2 {
		return m.usage(p, o)
	}
	to := p.Path(o.args[1])
	if i, err := m.fs.Stat(p.Cred, to); err == nil && i.IsDir() && !o.has("-T") {
		to = path.Join(to, path.Base(o.args[0]))
	}
	if err := m.fs.Rename(p.Cred, p.Path(o.args[0]), to); err != nil {
		return p.Fail(1, "cannot move '%s' to '%s': %s", o.args[0], o.args[1], reason(err))
	}
	return 0
}

func lnProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-s -f -n -T", "", false)
	if o.bad != "" || len(o.args) != 2 || !o.has("-s") {
		return m.usage(p, o)
	}
	if o.has("-f") {
		_ = m.fs.Remove(p.Cred, p.Path(o.args[1]))
	}
	if err := m.fs.Symlink(p.Cred, o.args[0], p.Path(o.args[1])); err != nil {
		return p.Fail(1, "failed to create symbolic link '%s': %s", o.args[1], reason(err))
	}
	return 0
}

func touchProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-c", "", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	code := 0
	for _, name := range o.args {
		err := m.fs.Chtimes(p.Cred, p.Path(name), m.w.Now())
		if errors.Is(err, fs.ErrNotExist) && !o.has("-c") {
			err = m.fs.WriteFile(p.Cred, p.Path(name), nil, 0o644)
		}
		if err != nil {
			code = p.Fail(1, "cannot touch '%s': %s", name, reason(err))
		}
	}
	return code
}

func rmProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-r -R -f -d --recursive --force --one-file-system", "", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	code := 0
	for _, name := range o.args {
		at := p.Path(name)
		info, err := m.fs.Lstat(p.Cred, at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && o.has("-f", "--force"):
			continue
		case err == nil && info.IsDir() && !o.has("-r", "-R", "--recursive"):
			code = p.Fail(1, "cannot remove '%s': Is a directory", name)
			continue
		case err == nil:
			err = m.fs.RemoveAll(p.Cred, at)
		}
		if err != nil {
			code = p.Fail(1, "cannot remove '%s': %s", name, reason(err))
		}
	}
	return code
}

func rmdirProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--ignore-fail-on-non-empty -p", "", false)
	code := 0
	for _, name := range o.args {
		info, err := m.fs.Lstat(p.Cred, p.Path(name))
		if err == nil && !info.IsDir() {
			code = p.Fail(1, "failed to remove '%s': Not a directory", name)
			continue
		}
		if err == nil {
			err = m.fs.Remove(p.Cred, p.Path(name))
		}
		if err != nil && !o.has("--ignore-fail-on-non-empty") {
			code = p.Fail(1, "failed to remove '%s': %s", name, reason(err))
		}
	}
	return code
}

// sumProgram is sha256sum and its like: two spaces between checksum and name, exit 1 if a file cannot be read.
func sumProgram(_ string, algorithm func() hash.Hash) program {
	return func(_ context.Context, m *Machine, p *shell.Proc) int {
		o := parse(p.Args[1:], "-b -t --binary", "", false)
		if o.bad != "" {
			return m.usage(p, o)
		}
		return m.inputs(p, o.args, func(name string, data []byte) {
			h := algorithm()
			_, _ = h.Write(data)
			escape := ""
			if strings.ContainsAny(name, "\\\n") {
				escape, name = `\`, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(name)
			}
			p.Printf("%s%x  %s\n", escape, h.Sum(nil), name)
		})
	}
}
