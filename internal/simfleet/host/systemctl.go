package host

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Exit statuses of systemctl, as LSB has them.
const (
	exitNotRunning = 3
	exitNoUnit     = 4
	exitNoService  = 5
)

func unitPrograms() map[string]program {
	return map[string]program{"systemctl": systemctlProgram, "journalctl": journalctlProgram}
}

func systemctlProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--value --no-pager --quiet -q --no-block --plain --no-legend --all -a --full -l --no-ask-password",
		"-p --property --timestamp --type -t --state", false)
	if o.bad != "" || len(o.args) == 0 {
		return m.usage(p, o)
	}
	verb, units := o.args[0], o.args[1:]
	switch verb {
	case "show":
		return m.systemctlShow(p, o, units)
	case "daemon-reload", "enable", "disable", "preset":
		if p.Cred.UID != 0 {
			return p.Fail(1, "Access denied")
		}
		return 0
	case "start", "stop", "restart", "reset-failed", "try-restart":
		return m.systemctlChange(ctx, p, verb, units)
	case "is-active", "is-failed":
		return m.systemctlIs(p, o, verb, units)
	case "is-system-running":
		p.Printf("running\n")
		return 0
	}
	m.noteUnknown("systemctl " + verb)
	return p.Fail(1, "Unknown command verb %s.", verb)
}

func unitName(s string) string {
	if strings.Contains(path.Base(s), ".") {
		return s
	}
	return s + ".service"
}

func (m *Machine) systemctlChange(ctx context.Context, p *shell.Proc, verb string, units []string) int {
	if p.Cred.UID != 0 {
		return p.Fail(1, "Failed to %s %s: Access denied", verb, strings.Join(units, " "))
	}
	code := 0
	for _, name := range units {
		name = unitName(name)
		var err error
		switch verb {
		case "start":
			err = m.StartUnit(ctx, name)
		case "stop":
			err = m.StopUnit(ctx, name)
		case "reset-failed":
			err = m.resetFailed(name)
		default:
			if err = m.StopUnit(ctx, name); err == nil {
				err = m.StartUnit(ctx, name)
			}
		}
		switch {
		case errors.Is(err, errNoUnit) && verb == "reset-failed":
			code = 1
			p.Args[0] = "systemctl"
			_, _ = p.Stderr.Write([]byte("Failed to reset failed state of unit " + name + ": Unit " + name + " not loaded.\n"))
		case errors.Is(err, errNoUnit):
			code = exitNoService
			_, _ = p.Stderr.Write([]byte("Failed to " + verb + " " + name + ": Unit " + name + " not found.\n"))
		case err != nil:
			code = 1
			_, _ = p.Stderr.Write([]byte("Job for " + name + " failed because " + err.Error() + ".\nSee \"systemctl status " +
				name + "\" and \"journalctl -xeu " + name + "\" for details.\n"))
		}
	}
	return code
}

func (m *Machine) systemctlIs(p *shell.Proc, o options, verb string, units []string) int {
	want := map[string]string{"is-active": "active", "is-failed": "failed"}[verb]
	code := 0
	for i, name := range units {
		u := m.Unit(unitName(name))
		if !o.has("--quiet", "-q") {
			p.Printf("%s\n", u.Active)
		}
		if u.Active != want && (i == 0 || code == 0) {
			code = exitNotRunning
			if u.Load == "not-found" && m.conf.Release != "12" { // systemd 252 makes no difference
				code = exitNoUnit
			}
			if verb == "is-failed" {
				code = 1
			}
		}
	}
	return code
}

func (m *Machine) systemctlShow(p *shell.Proc, o options, units []string) int {
	var names []string
	for _, pattern := range units {
		if !strings.ContainsAny(pattern, "*?[") {
			names = append(names, unitName(pattern))
			continue
		}
		for _, u := range m.Units() {
			if ok, _ := path.Match(pattern, u.Name); ok {
				names = append(names, u.Name)
			}
		}
	}
	var wanted []string
	for _, list := range append(o.set["-p"], o.set["--property"]...) {
		wanted = append(wanted, strings.Split(list, ",")...)
	}
	for i, name := range names {
		if i > 0 {
			p.Printf("\n")
		}
		m.showUnit(p, o, name, wanted)
	}
	return 0
}

// showUnit prints properties in systemd's own order, whatever order they were asked in.
func (m *Machine) showUnit(p *shell.Proc, o options, name string, wanted []string) {
	known := m.properties(name, o.get("--timestamp"))
	for _, kv := range known {
		if len(wanted) > 0 && !contains(wanted, kv[0]) {
			continue
		}
		if o.has("--value") {
			p.Printf("%s\n", kv[1])
		} else {
			p.Printf("%s=%s\n", kv[0], kv[1])
		}
	}
	for _, w := range wanted {
		if !hasKey(known, w) {
			m.noteUnknown("systemctl show -p " + w)
		}
	}
}

func contains(list []string, s string) bool {
	for _, w := range list {
		if w == s {
			return true
		}
	}
	return false
}

func hasKey(list [][2]string, s string) bool {
	for _, kv := range list {
		if kv[0] == s {
			return true
		}
	}
	return false
}

func (m *Machine) properties(name, style string) [][2]string {
	u := m.Unit(name)
	group, tasks := "", "[not set]"
	if u.Processes > 0 {
		group, tasks = "/system.slice/"+name, strconv.Itoa(u.Processes)
	}
	m.unitsMu.Lock()
	desc, inactive := name, time.Time{}
	if e := m.units[name]; e != nil {
		desc, inactive = e.desc, e.sinceInactive
	}
	m.unitsMu.Unlock()
	exec := ""
	if argv := m.setting(name, "ExecStart"); argv != "" {
		exec = "{ path=" + strings.Fields(argv)[0] + " ; argv[]=" + argv + " ; ignore_errors=no }"
	}
	status := "0"
	if u.Active == "failed" {
		status = "1"
	}
	since := m.mono(u.Since)
	return [][2]string{
		{"Type", m.setting(name, "Type")}, {"Restart", m.setting(name, "Restart")},
		{"MainPID", strconv.Itoa(u.MainPID)}, {"ControlPID", "0"}, {"NRestarts", "0"}, {"Result", u.Result},
		{"ExecMainStartTimestamp", stamp(m.at(u.Start), style)},
		{"ExecMainStartTimestampMonotonic", strconv.FormatInt(u.Start, 10)},
		{"ExecMainPID", strconv.Itoa(u.MainPID)}, {"ExecMainStatus", status}, {"ExecStart", exec},
		{"ControlGroup", group}, {"TasksCurrent", tasks}, {"User", m.setting(name, "User")},
		{"Id", name}, {"Names", name}, {"Description", desc},
		{"LoadState", u.Load}, {"ActiveState", u.Active}, {"SubState", u.Sub},
		{"FragmentPath", m.unitFile(name)}, {"DropInPaths", strings.Join(m.unitDropIns(name), " ")}, {"UnitFileState", "enabled"},
		{"StateChangeTimestamp", stamp(later(u.Since, inactive), style)},
		{"ActiveEnterTimestamp", stamp(u.Since, style)}, {"ActiveEnterTimestampMonotonic", since},
		{"InactiveEnterTimestamp", stamp(inactive, style)}, {"InactiveEnterTimestampMonotonic", m.mono(inactive)},
		{"NeedDaemonReload", "no"}, {"CanStart", "yes"}, {"Transient", map[bool]string{true: "yes", false: "no"}[m.transient(name)]},
	}
}

func (m *Machine) transient(name string) bool {
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	return m.units[name] != nil && m.units[name].transient
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (m *Machine) at(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return m.boot.Add(time.Duration(us) * time.Microsecond)
}

func (m *Machine) mono(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.Sub(m.boot).Microseconds(), 10)
}

// stamp writes a time as systemctl show does: "Mon 2026-11-30 20:44:04 UTC", or "@seconds" with --timestamp=unix.
func stamp(t time.Time, style string) string {
	switch {
	case t.IsZero():
		return ""
	case style == "unix":
		return "@" + strconv.FormatInt(t.Unix(), 10)
	}
	return t.UTC().Format("Mon 2006-01-02 15:04:05 UTC")
}

// journal keeps one line in the log of a unit.
func (m *Machine) journal(unit, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logs = append(m.logs, logLine{unit, m.w.Now().UTC().Format("Jan 02 15:04:05") + " " + m.conf.Name + " " + text})
}

type logLine struct{ unit, text string }

func journalctlProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "--no-pager -q -e -x -b", "-u --unit -n --lines -o --output --since", false)
	if o.bad != "" {
		return m.usage(p, o)
	}
	m.mu.Lock()
	var out []string
	for _, l := range m.logs {
		if want := o.get("-u", "--unit"); want == "" || unitName(want) == l.unit {
			out = append(out, l.text)
		}
	}
	m.mu.Unlock()
	if n, err := strconv.Atoi(o.get("-n", "--lines")); err == nil && n < len(out) {
		out = out[len(out)-n:]
	}
	if len(out) == 0 {
		out = []string{"-- No entries --"}
	}
	p.Printf("%s\n", strings.Join(out, "\n"))
	return 0
}
