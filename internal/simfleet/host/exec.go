package host

import (
	"context"
	"path"
	"strings"
	"syscall"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Exit statuses of a shell for a program that it cannot start.
const (
	exitDenied   = 126
	exitNotFound = 127
)

// program is one simulated program.
type program func(ctx context.Context, m *Machine, p *shell.Proc) int

// programs is every program of the base system and of Kibotos, by name. Those of packages answer only while
// their file is on the disk.
func programs() map[string]program {
	all := map[string]program{}
	for _, table := range []map[string]program{
		textPrograms(), filePrograms(), hostPrograms(), privilegePrograms(), packagePrograms(), unitPrograms(),
	} {
		for name, p := range table {
			all[name] = p
		}
	}
	return all
}

// Exec runs a program and returns its exit status (shell.Host).
func (m *Machine) Exec(ctx context.Context, p *shell.Proc) int {
	name := p.Args[0]
	run, at, code := m.resolve(p, name)
	if run == nil {
		if code == exitDenied {
			_, _ = p.Stderr.Write([]byte("sh: 1: " + name + ": Permission denied\n"))
			return code
		}
		m.noteUnknown(name)
		_, _ = p.Stderr.Write([]byte("sh: 1: " + name + ": not found\n"))
		return code
	}
	q := *p
	q.Args = append([]string{at}, p.Args[1:]...)
	return m.faulty(ctx, p.Args, func() int { return run(ctx, m, &q) })
}

// Lookup finds a program by its name (shell.Host).
func (m *Machine) Lookup(name string) (string, bool) {
	p, err := m.Proc("root", name)
	if err != nil {
		return "", false
	}
	run, at, _ := m.resolve(p, name)
	return at, run != nil
}

// resolve finds the program that name means for p, and the path that it is started as.
func (m *Machine) resolve(p *shell.Proc, name string) (run program, at string, code int) {
	if strings.Contains(name, "/") {
		return m.resolvePath(p, p.Path(name))
	}
	for _, dir := range strings.Split(p.Getenv("PATH"), ":") {
		file := path.Join("/", dir, name)
		if _, err := m.fs.Stat(p.Cred, file); err == nil {
			return m.resolvePath(p, file)
		}
	}
	if run, ok := m.w.programs[name]; ok {
		return run, "/usr/bin/" + name, 0
	}
	return nil, "", exitNotFound
}

func (m *Machine) resolvePath(p *shell.Proc, file string) (run program, at string, code int) {
	info, err := m.fs.Stat(p.Cred, file)
	if err == nil {
		if info.IsDir() || m.fs.Access(p.Cred, file, memfsExec) != nil {
			return nil, "", exitDenied
		}
		if run := m.fromFile(file); run != nil {
			return run, file, 0
		}
		return nil, "", exitDenied
	}
	if isErrno(err, syscall.EACCES) {
		return nil, "", exitDenied
	}
	switch path.Dir(file) {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin":
		if run, ok := m.w.programs[path.Base(file)]; ok {
			return run, file, 0
		}
	}
	return nil, "", exitNotFound
}

const memfsExec = 1

// fromFile tells what an executable file on the disk does: a Kibotos program by its name, a script by its first line.
func (m *Machine) fromFile(file string) program {
	switch base := path.Base(file); {
	case base == "kibo-agent":
		return agentProgram
	case base == "kibo" || strings.HasPrefix(base, "kibotos-"):
		return kibotosProgram
	}
	data, err := m.fs.ReadFile(memfs.Cred{}, file)
	if err != nil || !strings.HasPrefix(string(data[:min(len(data), 9)]), "#!/bin/sh") {
		return nil
	}
	return func(ctx context.Context, m *Machine, p *shell.Proc) int {
		return shell.Main(ctx, m, p.With(append([]string{"/bin/sh", file}, p.Args[1:]...)...))
	}
}
