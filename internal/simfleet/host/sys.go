package host

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// hostPrograms tell of the host itself.
func hostPrograms() map[string]program {
	return map[string]program{
		"date": dateProgram, "uname": unameProgram, "id": idProgram, "hostname": hostnameProgram, "whoami": whoamiProgram,
		"getent": getentProgram,
		"sleep":  sleepProgram, "true": okProgram, "false": falseProgram, "echo": builtinProgram, "printf": builtinProgram,
	}
}

func falseProgram(context.Context, *Machine, *shell.Proc) int { return 1 }

// builtinProgram is a program that the interpreter has built in, called by sudo and the like.
func builtinProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	name := p.Args[0][strings.LastIndex(p.Args[0], "/")+1:]
	return shell.Text(ctx, m, p, name, name+` "$@"`, append([]string{"--"}, p.Args[1:]...)...)
}

// dateProgram is date [-u] [+FORMAT] with the usual letters.
func dateProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-u --utc -R", "-d", false)
	if o.bad != "" || o.has("-d", "-R") {
		return m.usage(p, o)
	}
	now := m.w.Now().UTC()
	format := "+%a %b %e %H:%M:%S UTC %Y"
	if len(o.args) > 0 {
		format = o.args[0]
	}
	replace := []string{"%%", "%", "%s", strconv.FormatInt(now.Unix(), 10), "%N", fmt.Sprintf("%09d", now.Nanosecond())}
	for letter, layout := range map[string]string{
		"%Y": "2006", "%m": "01", "%d": "02", "%H": "15", "%M": "04", "%S": "05", "%F": time.DateOnly, "%T": time.TimeOnly,
		"%a": "Mon", "%b": "Jan", "%e": "_2", "%Z": "MST", "%z": "-0700",
	} {
		replace = append(replace, letter, now.Format(layout))
	}
	p.Printf("%s\n", strings.TrimPrefix(strings.NewReplacer(replace...).Replace(format), "+"))
	return 0
}

func unameProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-a -s -n -r -m", "", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	var out []string
	for _, kv := range [][2]string{{"-s", "Linux"}, {"-n", m.conf.Name}, {"-r", "6.1.0-sim-amd64"}, {"-m", "x86_64"}} {
		if o.has(kv[0], "-a") || (len(o.set) == 0 && kv[0] == "-s") {
			out = append(out, kv[1])
		}
	}
	p.Printf("%s\n", strings.Join(out, " "))
	return 0
}

func idProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-u -g -n -un", "", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	u := user{p.User, p.Cred.UID, p.Cred.GID, ""}
	if len(o.args) > 0 {
		var ok bool
		if u, ok = m.user(o.args[0]); !ok {
			return p.Fail(1, "'%s': no such user", o.args[0])
		}
	}
	switch {
	case o.has("-n"):
		p.Printf("%s\n", u.name)
	case o.has("-u"):
		p.Printf("%d\n", u.uid)
	case o.has("-g"):
		p.Printf("%d\n", u.gid)
	default:
		p.Printf("uid=%d(%s) gid=%d(%s) groups=%d(%s)\n", u.uid, u.name, u.gid, u.name, u.gid, u.name)
	}
	return 0
}

func hostnameProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	p.Printf("%s\n", m.conf.Name)
	return 0
}

func whoamiProgram(_ context.Context, _ *Machine, p *shell.Proc) int {
	p.Printf("%s\n", p.User)
	return 0
}

func sleepProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	if len(p.Args) != 2 {
		return p.Fail(1, "missing operand")
	}
	if p.Args[1] == "infinity" {
		<-ctx.Done()
		return 143
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(p.Args[1], "s"), 64)
	if err != nil {
		return p.Fail(1, "invalid time interval '%s'", p.Args[1])
	}
	m.w.Sleep(ctx, time.Duration(n*float64(time.Second)))
	return 0
}

// getentProgram is getent passwd|group NAME.
func getentProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	if len(p.Args) != 3 || (p.Args[1] != "passwd" && p.Args[1] != "group") {
		m.noteUnknown("getent " + strings.Join(p.Args[1:], " "))
		return 1
	}
	u, ok := m.user(p.Args[2])
	if !ok {
		return 2
	}
	if p.Args[1] == "group" {
		p.Printf("%s:x:%d:\n", u.name, u.gid)
	} else {
		p.Printf("%s:x:%d:%d::%s:/bin/sh\n", u.name, u.uid, u.gid, u.home)
	}
	return 0
}
