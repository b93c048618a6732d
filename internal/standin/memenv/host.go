// Package memenv is a host in memory for the stand-in: files, locks, units and a network of ctrls. A simulated
// fleet and the tests of the logic run on it.
package memenv

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/internal/standin"
)

// Network connects hosts: it finds the ctrl that listens on an address.
type Network struct {
	mu    sync.Mutex
	ctrls map[string]func(standin.Request) standin.Response
}

// NewNetwork makes a network without any ctrl.
func NewNetwork() *Network {
	return &Network{ctrls: map[string]func(standin.Request) standin.Response{}}
}

// Listen makes handle answer on addr; nil takes it away.
func (n *Network) Listen(addr string, handle func(standin.Request) standin.Response) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if handle == nil {
		delete(n.ctrls, addr)
		return
	}
	n.ctrls[addr] = handle
}

// Call sends one request to the ctrl on addr.
func (n *Network) Call(addr string, req standin.Request) (standin.Response, error) {
	n.mu.Lock()
	handle, ok := n.ctrls[addr]
	n.mu.Unlock()
	if !ok {
		return standin.Response{}, fmt.Errorf("cannot connect to %s: connection refused", addr)
	}
	return handle(req), nil
}

// Host is one host in memory. It is safe for concurrent use.
type Host struct {
	network *Network
	now     func() time.Time

	mu     sync.Mutex
	files  map[string]file
	stores map[string]map[string]string
	locks  map[string]bool
	units  map[string]standin.Unit
	pid    int
	random uint64
}

type file struct {
	data []byte
	perm fs.FileMode
}

// NewHost makes an empty host with a clock, on a network.
func NewHost(network *Network, now func() time.Time) *Host {
	return &Host{network: network, now: now, files: map[string]file{}, stores: map[string]map[string]string{},
		locks: map[string]bool{}, units: map[string]standin.Unit{}, pid: 1000}
}

// Env is the host as one running program sees it.
func (h *Host) Env(executable, user string, stdout, stderr io.Writer) standin.Env {
	return env{Host: h, executable: executable, user: user, stdout: stdout, stderr: stderr}
}

// SetUnit makes a unit be in a state; a test or a simulated systemd says how kibotos-node.service is.
func (h *Host) SetUnit(u standin.Unit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.units[u.Name] = u
}

// Units lists all units that are not inactive, sorted by name.
func (h *Host) Units() []standin.Unit {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []standin.Unit
	for _, name := range slices.Sorted(maps.Keys(h.units)) {
		if h.units[name].Active != "inactive" {
			all = append(all, h.units[name])
		}
	}
	return all
}

// Snapshot returns the content of every file and store, for proofs that nothing was written.
func (h *Host) Snapshot() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]string{}
	for name, f := range h.files {
		all[name] = string(f.data)
	}
	for name, pairs := range h.stores {
		for key, value := range pairs {
			all[name+"#"+key] = value
		}
	}
	return all
}

// ReadFile implements standin.Files.
func (h *Host) ReadFile(name string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.files[path.Clean(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return slices.Clone(f.data), nil
}

// WriteFile implements standin.Files.
func (h *Host) WriteFile(name string, data []byte, perm fs.FileMode) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[path.Clean(name)] = file{data: slices.Clone(data), perm: perm}
	return nil
}

// ReadDir implements standin.Files.
func (h *Host) ReadDir(dir string) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []string
	for name := range h.files {
		rest, ok := strings.CutPrefix(name, path.Clean(dir)+"/")
		if !ok {
			continue
		}
		entry, _, _ := strings.Cut(rest, "/")
		found = append(found, entry)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Remove implements standin.Files.
func (h *Host) Remove(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, path.Clean(name))
	return nil
}

// TryLock implements standin.Files.
func (h *Host) TryLock(name string) (io.Closer, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.locks[name] {
		return nil, standin.ErrLocked
	}
	h.locks[name] = true
	return &lock{host: h, name: name}, nil
}

type lock struct {
	host *Host
	name string
	once sync.Once
}

// Close frees the lock.
func (l *lock) Close() error {
	l.once.Do(func() {
		l.host.mu.Lock()
		defer l.host.mu.Unlock()
		delete(l.host.locks, l.name)
	})
	return nil
}

// ReadStore implements standin.Files.
func (h *Host) ReadStore(name string) (map[string]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pairs, ok := h.stores[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return maps.Clone(pairs), nil
}

// UpdateStore implements standin.Files.
func (h *Host) UpdateStore(name string, change func(map[string]string) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	pairs := maps.Clone(h.stores[name])
	if pairs == nil {
		pairs = map[string]string{}
	}
	if err := change(pairs); err != nil {
		return err
	}
	h.stores[name] = pairs
	return nil
}

// Unit implements standin.Processes.
func (h *Host) Unit(name string) (standin.Unit, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u, ok := h.units[name]; ok {
		return u, nil
	}
	return standin.Unit{Name: name, Active: "inactive"}, nil
}

// StartUnit implements standin.Processes.
func (h *Host) StartUnit(spec standin.UnitSpec) (standin.Unit, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.units[spec.Name].Active == "active" {
		return standin.Unit{}, fmt.Errorf("cannot start %s: unit is active already", spec.Name)
	}
	h.pid++
	u := standin.Unit{Name: spec.Name, Active: "active", MainPID: h.pid, Processes: 1, Start: fmt.Sprint(h.pid * 1_000_003)}
	h.units[spec.Name] = u
	return u, nil
}

// StopUnit implements standin.Processes.
func (h *Host) StopUnit(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.units, name)
	return nil
}
