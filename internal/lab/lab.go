//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Lab is a fleet of hosts on this machine. Safe for concurrent use.
type Lab struct {
	Dir     string
	state   state
	cgroups string // where the unified hierarchy is mounted
	log     func(format string, args ...any)
}

// Host is one host of a lab.
type Host struct {
	HostSpec
	Address string `json:"address"` // loopback address
	Port    int    `json:"port"`    // of its sshd, on its address
}

// state is what state.json in the lab's directory says. It is written before any host is made.
type state struct {
	ID        string            `json:"id"`
	Network   string            `json:"network"`
	Bases     map[string]string `json:"bases"`   // suite → base directory
	Version   string            `json:"version"` // of the stand-in; empty for hosts without
	Instances int               `json:"instances"`
	Hosts     []Host            `json:"hosts"`
}

// marker is a file that tells a lab's directory from one that must not be deleted.
const marker = ".kibo-lab"

// Up makes the lab, or repairs the one that is in the directory: hosts that run stay as they are, hosts that are
// down or were never whole are made anew (BootHost boots one with the files it has). A lab of another shape
// is taken down first.
func Up(ctx context.Context, spec Spec) (*Lab, error) {
	spec, err := spec.filled()
	if err != nil {
		return nil, err
	}
	if err := preflight(); err != nil {
		return nil, err
	}
	lock, err := tryLock(lockPath(spec.Dir))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }()
	lab, err := prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := lab.repair(ctx); err != nil {
		return nil, err
	}
	return lab, nil
}

// repair makes every host that is not whole, and starts the parts on them.
func (l *Lab) repair(ctx context.Context) error {
	start := time.Now()
	var fresh []Host
	for _, host := range l.state.Hosts {
		if !l.whole(host) {
			fresh = append(fresh, host)
		}
	}
	if err := l.each(ctx, fresh, l.make); err != nil {
		return err
	}
	if l.state.Version != "" {
		if err := l.startParts(ctx, fresh); err != nil {
			return err
		}
		if err := l.waitReady(ctx, fresh); err != nil {
			return err
		}
	}
	for _, host := range fresh {
		if err := os.WriteFile(l.readyMark(host.Name), nil, 0o644); err != nil {
			return fmt.Errorf("cannot mark host %s: %w", host.Name, err)
		}
	}
	l.log("lab of %d hosts (%d made now) is up in %s: %s", len(l.state.Hosts), len(fresh), since(start), l.Dir)
	return nil
}

// Remake makes hosts anew from their bases, with the release and the Instances of the spec: the named ones, or
// all. Addresses and keys stay.
func (l *Lab) Remake(ctx context.Context, names ...string) error {
	lock, err := tryLock(lockPath(l.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	for _, host := range l.state.Hosts {
		if len(names) > 0 && !slices.Contains(names, host.Name) {
			continue
		}
		if err := os.Remove(l.readyMark(host.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remake host %s: %w", host.Name, err)
		}
	}
	return l.repair(ctx)
}

// prepare makes everything but the hosts: bases, packages, network, keys, and the files for clients.
func prepare(ctx context.Context, spec Spec) (*Lab, error) {
	if err := ownDir(spec.Dir); err != nil {
		return nil, err
	}
	root, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	if err := raiseLimits(spec.Log); err != nil {
		return nil, err
	}
	lab := &Lab{Dir: spec.Dir, cgroups: root, log: spec.Log}
	group, limited := errgroup.WithContext(ctx)
	var bottoms map[string]string
	group.Go(func() (err error) { bottoms, err = bases(limited, spec); return err })
	if spec.Source != "" {
		group.Go(func() error { return buildDebs(limited, spec) })
	}
	group.Go(func() error { return buildHello(limited, spec.Dir) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	one, err := claim(ctx, spec.Dir, len(spec.Hosts))
	if err != nil {
		return nil, err
	}
	lab.state = state{ID: one.ID, Network: one.Network, Bases: bottoms, Instances: spec.Instances}
	if spec.Source != "" {
		lab.state.Version = spec.Version
	}
	if err := lab.place(ctx, spec); err != nil {
		return nil, err
	}
	return lab, lab.writeClientFiles()
}

// place gives every host its address, and takes down what is there if the lab shall have another shape.
func (l *Lab) place(ctx context.Context, spec Spec) error {
	old, err := readState(l.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		l.log("the lab in %s has no usable state and is made anew: %v", l.Dir, err)
	}
	port, why := 0, ""
	if len(old.Hosts) > 0 {
		port = old.Hosts[0].Port // its own sshds may be listening there
	} else if port, why = choosePort(l.state.Network); why != "" {
		l.log("sshd listens on port %d: %s", port, why)
	}
	for i, host := range spec.Hosts {
		l.state.Hosts = append(l.state.Hosts, Host{HostSpec: host, Address: address(l.state.Network, i+1), Port: port})
	}
	if same(old, l.state) {
		return nil
	}
	if len(old.Hosts) > 0 {
		l.log("the lab in %s shall be another one: taking it down first", l.Dir)
	}
	if err := l.dropHosts(ctx); err != nil {
		return err
	}
	return l.writeState()
}

// same reports whether two states describe the same lab.
func same(a, b state) bool {
	left, errA := json.Marshal(a)
	right, errB := json.Marshal(b)
	return errA == nil && errB == nil && slices.Equal(left, right)
}

// Open returns the lab that is in the directory, without changing anything.
func Open(dir string) (*Lab, error) {
	spec, err := Spec{Dir: dir}.filled()
	if err != nil {
		return nil, err
	}
	root, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	lab := &Lab{Dir: spec.Dir, cgroups: root, log: spec.Log}
	if lab.state, err = readState(lab.Dir); err != nil {
		return nil, fmt.Errorf("cannot open the lab in %s: %w", lab.Dir, err)
	}
	return lab, nil
}

// Hosts lists the hosts in the order of the spec.
func (l *Lab) Hosts() []Host { return slices.Clone(l.state.Hosts) }

// Host returns one host by its name.
func (l *Lab) Host(name string) (Host, error) {
	for _, host := range l.state.Hosts {
		if host.Name == name {
			return host, nil
		}
	}
	return Host{}, fmt.Errorf("cannot find host %q in the lab %s", name, l.Dir)
}

// Running reports whether the host's systemd is there.
func (l *Lab) Running(name string) bool {
	_, err := l.leader(name)
	return err == nil
}

// hostDir holds a host's layer, console and marks.
func (l *Lab) hostDir(name string) string { return filepath.Join(l.Dir, "hosts", name) }

// each does something to hosts in parallel, and returns every error.
func (l *Lab) each(ctx context.Context, hosts []Host, do func(context.Context, Host) error) error {
	errs := make([]error, len(hosts))
	var wait sync.WaitGroup
	for i, host := range hosts {
		wait.Go(func() { errs[i] = do(ctx, host) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// readState reads state.json.
func readState(dir string) (state, error) {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err != nil {
		return state{}, fmt.Errorf("cannot read state: %w", err)
	}
	var read state
	if err := json.Unmarshal(data, &read); err != nil {
		return state{}, fmt.Errorf("cannot read state: %w", err)
	}
	return read, nil
}

// writeState replaces state.json in one step.
func (l *Lab) writeState() error {
	data, err := json.MarshalIndent(l.state, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	path := filepath.Join(l.Dir, "state.json")
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("cannot write state: %w", err)
	}
	return nil
}

// ownDir makes the lab's directory, and refuses one that holds something else.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make directory of the lab: %w", err)
	}
	items, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read directory of the lab: %w", err)
	}
	if len(items) > 0 && !exists(filepath.Join(dir, marker)) {
		return fmt.Errorf("cannot use %s for a lab: it holds something else (no %s in it)", dir, marker)
	}
	if err := os.WriteFile(filepath.Join(dir, marker), []byte("A lab of kibo-rollout. `lab down` deletes this directory.\n"), 0o644); err != nil {
		return fmt.Errorf("cannot mark directory of the lab: %w", err)
	}
	return nil
}

// lockPath is the file that serialises commands on one lab. It outlives the lab's directory.
func lockPath(dir string) string { return filepath.Join(registryDir, labID(dir)+".lock") }

// since is a duration for people.
func since(start time.Time) time.Duration { return time.Since(start).Round(10 * time.Millisecond) }
