package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// Unit is what the service manager says of one unit.
type Unit struct {
	Name      string
	Load      string // loaded or not-found
	Active    string // active, inactive, failed, activating, deactivating
	Sub       string
	Result    string // success, exit-code
	MainPID   int
	Processes int
	Start     int64 // microseconds since boot at which the main process was started
	Since     time.Time
	Argv      []string
}

// service is a running stand-in program.
type service interface{ Stop() error }

type unit struct {
	name      string
	desc      string
	transient bool
	op        sync.Mutex // one start or stop at a time

	// Guarded by Machine.unitsMu.
	active, sub, result string
	argv                []string
	pid                 int
	start               int64
	since               time.Time
	sinceInactive       time.Time
	running             service
	left                int // processes that a stop did not end
}

// Errors of the service manager.
var (
	errNoUnit  = errors.New("unit not found")
	errStarted = errors.New("the control process exited with error code")
)

// entry returns the unit, made from its file if there is one and it was never used.
func (m *Machine) entry(name string) (*unit, error) {
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	if u := m.units[name]; u != nil {
		if u.transient || m.unitFile(name) != "" || u.active == "active" {
			return u, nil
		}
	}
	if m.unitFile(name) == "" {
		return nil, errNoUnit
	}
	u := &unit{name: name, active: "inactive", sub: "dead", result: "success", desc: m.setting(name, "Description")}
	m.units[name] = u
	return u, nil
}

// Unit returns the state of one unit.
func (m *Machine) Unit(name string) Unit {
	u, err := m.entry(name)
	if err != nil {
		return Unit{Name: name, Load: "not-found", Active: "inactive", Sub: "dead", Result: "success"}
	}
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	return u.view()
}

func (u *unit) view() Unit {
	v := Unit{
		Name: u.name, Load: "loaded", Active: u.active, Sub: u.sub, Result: u.result, MainPID: u.pid,
		Start: u.start, Since: u.since, Argv: u.argv, Processes: u.left,
	}
	if u.pid > 0 {
		v.Processes++
	}
	return v
}

// Units lists the units that were ever started or loaded, sorted by name.
func (m *Machine) Units() []Unit {
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	var out []Unit
	for _, name := range slices.Sorted(maps.Keys(m.units)) {
		out = append(out, m.units[name].view())
	}
	return out
}

// VMMs lists the units of virtual machines, sorted by name.
func (m *Machine) VMMs() []Unit {
	return slices.DeleteFunc(m.Units(), func(u Unit) bool {
		return !strings.HasPrefix(u.Name, "kibotos-vmm-") || u.MainPID == 0
	})
}

// begin marks a unit as running with a new main process and shows it under /proc and /sys.
func (m *Machine) begin(u *unit, argv []string, s service) {
	pid := m.newPID()
	now := m.w.Now()
	m.unitsMu.Lock()
	u.active, u.sub, u.result = "active", "running", "success"
	u.argv, u.pid, u.running = argv, pid, s
	u.start, u.since = now.Sub(m.boot).Microseconds(), now
	m.unitsMu.Unlock()
	m.showProcess(u.name, pid, argv)
}

func (m *Machine) showProcess(unit string, pid int, argv []string) {
	root := memfs.Cred{}
	proc := "/proc/" + strconv.Itoa(pid)
	_ = m.fs.MkdirAll(root, proc, 0o555)
	_ = m.fs.Symlink(root, argv[0], proc+"/exe")
	_ = m.fs.WriteFile(root, proc+"/cmdline", []byte(strings.Join(argv, "\x00")+"\x00"), 0o444)
	_ = m.fs.WriteFile(root, proc+"/cgroup", []byte("0::/system.slice/"+unit+"\n"), 0o444)
	_ = m.fs.MkdirAll(root, "/sys/fs/cgroup/system.slice/"+unit, 0o755)
	m.showGroup(unit, []int{pid})
}

func (m *Machine) showGroup(unit string, pids []int) {
	var s strings.Builder
	for _, pid := range pids {
		s.WriteString(strconv.Itoa(pid) + "\n")
	}
	_ = m.fs.WriteFile(memfs.Cred{}, "/sys/fs/cgroup/system.slice/"+unit+"/cgroup.procs", []byte(s.String()), 0o644)
}

// end marks a unit as not running.
func (m *Machine) end(u *unit, active, result string) {
	m.unitsMu.Lock()
	pid := u.pid
	u.active, u.sub, u.result = active, map[string]string{"inactive": "dead", "failed": "failed"}[active], result
	u.pid, u.running, u.sinceInactive = 0, nil, m.w.Now()
	left := u.left
	if u.transient && active == "inactive" {
		delete(m.units, u.name)
	}
	m.unitsMu.Unlock()
	if pid > 0 {
		_ = m.fs.RemoveAll(memfs.Cred{}, "/proc/"+strconv.Itoa(pid))
	}
	if left == 0 {
		_ = m.fs.RemoveAll(memfs.Cred{}, "/sys/fs/cgroup/system.slice/"+u.name)
	}
}

// StartUnit starts a unit and waits until it is up, as systemctl start does.
func (m *Machine) StartUnit(ctx context.Context, name string) error {
	u, err := m.entry(name)
	if err != nil {
		return err
	}
	u.op.Lock()
	defer u.op.Unlock()
	if m.Unit(name).Active == "active" {
		return nil
	}
	m.setState(u, "activating", "start")
	m.w.Sleep(ctx, m.w.Lat.Start)
	argv, run, err := m.launch(ctx, name)
	if err == nil && m.Faults().FailStart[name] {
		err = fmt.Errorf("cannot start %s: fault", name)
		if run != nil {
			err = errors.Join(err, run.Stop())
		}
	}
	if err != nil {
		m.journal(name, err.Error())
		m.end(u, "failed", "exit-code")
		return errStarted
	}
	m.begin(u, argv, run)
	m.announce(run)
	return nil
}

func (m *Machine) setState(u *unit, active, sub string) {
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	u.active, u.sub = active, sub
}

// StopUnit stops one unit and waits for it. A unit that is not there is an error, one that does not run is not.
func (m *Machine) StopUnit(ctx context.Context, name string) error {
	u, err := m.entry(name)
	if err != nil {
		return err
	}
	u.op.Lock()
	defer u.op.Unlock()
	m.unitsMu.Lock()
	running, active := u.running, u.active
	m.unitsMu.Unlock()
	if active != "active" {
		return nil
	}
	m.setState(u, "deactivating", "stop-sigterm")
	m.w.Sleep(ctx, m.w.Lat.Stop)
	m.withdraw(running)
	if running != nil {
		if err := running.Stop(); err != nil {
			m.journal(name, err.Error())
		}
	}
	m.end(u, "inactive", "success")
	return nil
}

// startTransient starts a service that belongs to no file, such as that of a virtual machine.
func (m *Machine) startTransient(name, desc string, argv []string) (Unit, error) {
	m.unitsMu.Lock()
	if old := m.units[name]; old != nil && old.active == "active" {
		m.unitsMu.Unlock()
		return Unit{}, fmt.Errorf("cannot start %s: unit already exists", name)
	}
	u := &unit{name: name, desc: desc, transient: true, active: "inactive", sub: "dead", result: "success"}
	m.units[name] = u
	m.unitsMu.Unlock()
	m.begin(u, argv, nil)
	return m.Unit(name), nil
}

// Kill ends the main process of a unit behind the service manager's back, as a crash does.
func (m *Machine) Kill(name string) {
	u, err := m.entry(name)
	if err != nil {
		return
	}
	m.unitsMu.Lock()
	running := u.running
	m.unitsMu.Unlock()
	m.withdraw(running)
	if running != nil {
		_ = running.Stop()
	}
	m.end(u, "failed", "signal")
}

// resetFailed makes a failed unit inactive again.
func (m *Machine) resetFailed(name string) error {
	u, err := m.entry(name)
	if err != nil {
		return err
	}
	m.unitsMu.Lock()
	defer m.unitsMu.Unlock()
	if u.active == "failed" {
		u.active, u.sub, u.result = "inactive", "dead", "success"
	}
	return nil
}

// replaced marks the programs of running processes whose file was replaced, as /proc does.
func (m *Machine) replaced(file string) {
	m.unitsMu.Lock()
	var pids []int
	for _, u := range m.units {
		if u.pid > 0 && len(u.argv) > 0 && u.argv[0] == file {
			pids = append(pids, u.pid)
		}
	}
	m.unitsMu.Unlock()
	for _, pid := range pids {
		exe := "/proc/" + strconv.Itoa(pid) + "/exe"
		_ = m.fs.Remove(memfs.Cred{}, exe)
		_ = m.fs.Symlink(memfs.Cred{}, file+" (deleted)", exe)
	}
}
