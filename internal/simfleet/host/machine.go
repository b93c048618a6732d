// Package host is one simulated Debian machine: a disk, a service manager, a package database and the programs
// that an upgrade calls, with output in the form of the real ones. Kibotos on it is the stand-in, run by the same
// code as on real hosts. It opens no socket and touches nothing of the machine that it runs on.
package host

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Arch is the dpkg architecture of every simulated machine.
const Arch = "amd64"

// Config says what a machine is.
type Config struct {
	Name     string
	Release  string // "12" or "13": of Debian
	Login    string // login user; has sudo
	Password string // sudo asks for it; empty: it asks for nothing
	NoSudo   bool   // the login user may not use sudo at all
	Index    int    // makes ids and process numbers differ between machines
}

// Machine is one simulated host. Safe for concurrent use.
type Machine struct {
	w    *World
	conf Config
	fs   *memfs.FS
	boot time.Time
	ctx  context.Context // ends with Close; jobs live as long as it
	stop context.CancelFunc

	unitsMu sync.Mutex // guards units
	units   map[string]*unit

	mu       sync.Mutex // guards what follows
	packages map[string]*Package
	jobs     map[string]*job
	held     map[string]*flock // by path
	users    []user
	pid      int
	faults   Faults
	unknown  []string
	logs     []logLine

	stores stores
	apt    sync.Mutex // /var/lib/dpkg/lock-frontend
}

// Package is one entry of the package database.
type Package struct {
	Name    string
	Version string
	State   string // installed, unpacked, half-configured, config-files, …
	Want    string // install, hold, deinstall, …
	files   []string
	scripts map[string]string
	conf    []string
}

type user struct {
	name     string
	uid, gid int
	home     string
}

// New makes a freshly installed machine without any Kibotos on it.
func New(w *World, c Config) (*Machine, error) {
	if c.Release == "" {
		c.Release = "12"
	}
	if c.Login == "" {
		c.Login = "ops"
	}
	m := &Machine{
		w: w, conf: c, fs: memfs.New(w.Now), boot: w.Now().Add(-time.Hour - time.Duration(c.Index)*time.Second),
		units: map[string]*unit{}, packages: map[string]*Package{}, jobs: map[string]*job{},
		held: map[string]*flock{}, pid: 400 + c.Index%500,
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	m.users = []user{{"root", 0, 0, "/root"}, {c.Login, 1000, 1000, "/home/" + c.Login}}
	if err := m.base(); err != nil {
		m.stop()
		return nil, fmt.Errorf("cannot set up host %s: %w", c.Name, err)
	}
	return m, nil
}

// Close ends everything that runs on the machine.
func (m *Machine) Close() { m.stop() }

// Name is the host's name.
func (m *Machine) Name() string { return m.conf.Name }

// Login is the name of the login user.
func (m *Machine) Login() string { return m.conf.Login }

// FS is the disk.
func (m *Machine) FS() *memfs.FS { return m.fs }

// Unknown lists commands and properties that were asked for and that the machine does not know, in order.
func (m *Machine) Unknown() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.unknown)
}

func (m *Machine) noteUnknown(what string) {
	// A Kibotos program that is not there is a package that is not installed, which a machine knows well.
	if name := path.Base(strings.TrimPrefix(what, "sudo ")); name == "kibo" || name == "kibo-agent" || strings.HasPrefix(name, "kibotos-") {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unknown = append(m.unknown, what)
}

// Installed returns the package database's entry of a package.
func (m *Machine) Installed(name string) (Package, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.packages[name]
	if !ok {
		return Package{}, false
	}
	return *p, true
}

// Hold sets or clears dpkg's hold on a package.
func (m *Machine) Hold(name string, hold bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.packages[name]; p != nil {
		p.Want = "install"
		if hold {
			p.Want = "hold"
		}
	}
}

// Proc makes a process of a user, as a login or a service starts one.
func (m *Machine) Proc(name string, args ...string) (*shell.Proc, error) {
	u, ok := m.user(name)
	if !ok {
		return nil, fmt.Errorf("cannot start %v on %s: no user %q", args, m.conf.Name, name)
	}
	return &shell.Proc{
		Args: args, Dir: u.home, User: u.name, Cred: memfs.Cred{UID: u.uid, GID: u.gid}, Env: environ(u),
	}, nil
}

func environ(u user) []string {
	p := "PATH=/usr/local/bin:/usr/bin:/bin"
	if u.uid == 0 {
		p = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return []string{p, "HOME=" + u.home, "USER=" + u.name, "LOGNAME=" + u.name, "SHELL=/bin/sh", "LANG=C.UTF-8"}
}

func (m *Machine) user(name string) (user, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.users {
		if u.name == name {
			return u, true
		}
	}
	return user{}, false
}

// addUser makes a system user, as adduser --system does; one that is there is left as it is.
func (m *Machine) addUser(name, home string) user {
	if u, ok := m.user(name); ok {
		return u
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := 999
	for _, u := range m.users {
		if u.uid < 1000 && u.uid > 0 && u.uid <= id {
			id = u.uid - 1
		}
	}
	u := user{name, id, id, home}
	m.users = append(m.users, u)
	return u
}

func (m *Machine) userByID(uid int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.users {
		if u.uid == uid {
			return u.name
		}
	}
	return fmt.Sprint(uid)
}

func (m *Machine) newPID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pid++
	return m.pid
}
