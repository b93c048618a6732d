package host

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// privilegePrograms run another program as somebody else, or under some condition.
func privilegePrograms() map[string]program {
	return map[string]program{
		"sudo": sudoProgram, "runuser": runuserProgram, "flock": flockProgram, "env": envProgram,
		"sh": shProgram, "bash": shProgram, "dash": shProgram, "setsid": withoutOptions, "nice": withoutOptions,
		"timeout": timeoutProgram,
	}
}

func shProgram(ctx context.Context, m *Machine, p *shell.Proc) int { return shell.Main(ctx, m, p) }

// become starts words as another user with that user's environment.
func (m *Machine) become(ctx context.Context, p *shell.Proc, name string, words []string) int {
	u, ok := m.user(name)
	if !ok {
		return p.Fail(1, "unknown user %s", name)
	}
	q := *p
	q.User, q.Cred, q.Env, q.Args = u.name, memfs.Cred{UID: u.uid, GID: u.gid}, environ(u), words
	return m.Exec(ctx, &q)
}

// sudoProgram is sudo for root and for the login user, with or without a password.
func sudoProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-n --non-interactive -S --stdin -H -E -k -v -b", "-u --user -p --prompt -g", true)
	if o.bad != "" {
		return m.usage(p, o)
	}
	if p.User != "root" {
		if m.conf.NoSudo || p.User != m.conf.Login {
			return p.Fail(1, "%s is not in the sudoers file.", p.User)
		}
		if code := m.sudoPassword(p, o); code != 0 {
			return code
		}
	}
	if len(o.args) == 0 {
		if o.has("-v", "-k") {
			return 0
		}
		return m.usage(p, o)
	}
	words := o.args
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.Contains(words[0], "/") {
		words = words[1:] // NAME=value before the command
	}
	who := orDefault(o.get("-u", "--user"), "root")
	if _, ok := m.user(who); !ok {
		return p.Fail(1, "unknown user %s", who)
	}
	if run, _, code := m.resolve(rootPath(p), words[0]); run == nil && code == exitNotFound {
		m.noteUnknown("sudo " + words[0])
		return p.Fail(1, "%s: command not found", words[0])
	}
	return m.become(ctx, p, who, words)
}

// rootPath is p with the search path that sudo uses (secure_path).
func rootPath(p *shell.Proc) *shell.Proc {
	q := *p
	q.Cred, q.Env = memfs.Cred{}, environ(user{home: "/root"})
	return &q
}

func (m *Machine) sudoPassword(p *shell.Proc, o options) int {
	if m.conf.Password == "" {
		return 0
	}
	if o.has("-n", "--non-interactive") {
		return p.Fail(1, "a password is required")
	}
	if !o.has("-S", "--stdin") {
		return p.Fail(1, "a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper")
	}
	prompt := orDefault(o.get("-p", "--prompt"), "[sudo] password for "+p.User+": ")
	for range 3 {
		_, _ = p.Stderr.Write([]byte(prompt))
		line, err := shell.ReadLine(p.Stdin)
		if strings.TrimSuffix(line, "\n") == m.conf.Password {
			return 0
		}
		if err != nil {
			_, _ = p.Stderr.Write([]byte("\nsudo: no password was provided\n"))
			return p.Fail(1, "a password is required")
		}
		_, _ = p.Stderr.Write([]byte("Sorry, try again.\n"))
	}
	return p.Fail(1, "3 incorrect password attempts")
}

func runuserProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-l -", "-u --user -c -s", true)
	if o.bad != "" || !o.has("-u", "--user") || len(o.args) == 0 {
		return m.usage(p, o)
	}
	if p.Cred.UID != 0 {
		return p.Fail(1, "may not be used by non-root users")
	}
	who := o.get("-u", "--user")
	if _, ok := m.user(who); !ok {
		return p.Fail(1, "user %s does not exist or the user entry does not contain all the required fields", who)
	}
	return m.become(ctx, p, who, o.args)
}

// flockProgram is flock FILE COMMAND... and flock FILE -c TEXT.
func flockProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-n --nonblock --nb -x -e --exclusive -o --close", "-w --timeout -E --conflict-exit-code", true)
	if o.bad != "" || len(o.args) < 2 {
		return m.usage(p, o)
	}
	file, words := p.Path(o.args[0]), o.args[1:]
	conflict := 1
	if v := o.get("-E", "--conflict-exit-code"); v != "" {
		conflict = leadingInt(v)
	}
	if err := m.write(p, file, nil, true); err != nil {
		return p.Fail(66, "cannot open lock file %s: %s", file, reason(err))
	}
	for {
		l, ok := m.tryLock(file)
		if ok {
			defer func() { _ = l.Close() }()
			break
		}
		if o.has("-n", "--nonblock", "--nb") {
			return conflict
		}
		select {
		case <-l.done:
		case <-m.ctx.Done():
			return conflict
		}
	}
	if words[0] == "-c" {
		return shell.Main(ctx, m, p.With(append([]string{"sh"}, words...)...))
	}
	return m.Exec(ctx, p.With(words...))
}

// envProgram is env [NAME=value...] COMMAND..., or a list of the environment.
func envProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	words := p.Args[1:]
	q := *p
	q.Env = slices.Clone(p.Env)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		name, _, _ := strings.Cut(words[0], "=")
		q.Env = slices.DeleteFunc(q.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		q.Env = append(q.Env, words[0])
		words = words[1:]
	}
	if len(words) == 0 {
		p.Printf("%s\n", strings.Join(q.Env, "\n"))
		return 0
	}
	if strings.HasPrefix(words[0], "-") {
		m.noteUnknown("env " + words[0])
		return p.Fail(125, "unknown option %s", words[0])
	}
	q.Args = words
	return m.Exec(ctx, &q)
}

// withoutOptions is a program that only runs another one.
func withoutOptions(ctx context.Context, m *Machine, p *shell.Proc) int {
	if len(p.Args) < 2 || strings.HasPrefix(p.Args[1], "-") {
		m.noteUnknown(path.Base(p.Args[0]) + " " + strings.Join(p.Args[1:], " "))
		return p.Fail(125, "no command")
	}
	return m.Exec(ctx, p.With(p.Args[1:]...))
}

func timeoutProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--foreground --preserve-status", "-k -s", true)
	if o.bad != "" || len(o.args) < 2 {
		return m.usage(p, o)
	}
	limit, err := time.ParseDuration(strings.TrimSuffix(o.args[0], "s") + "s")
	if err != nil {
		return p.Fail(125, "invalid time interval '%s'", o.args[0])
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	code := m.Exec(ctx, p.With(o.args[1:]...))
	if ctx.Err() != nil {
		return 124
	}
	return code
}
