//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Down ends every process of the lab and removes everything it made. The directory is gone afterwards.
func (l *Lab) Down(ctx context.Context) error { return Down(ctx, l.Dir) }

// Down takes down the lab in the directory, whole or half made. Without one it does nothing.
func Down(ctx context.Context, dir string) error {
	spec, err := Spec{Dir: dir}.filled()
	if err != nil {
		return err
	}
	if err := needRoot(); err != nil {
		return err
	}
	lock, err := tryLock(lockPath(spec.Dir))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	root, err := cgroupRoot()
	if err != nil {
		return err
	}
	lab := &Lab{Dir: spec.Dir, cgroups: root, log: spec.Log}
	lab.state.ID = labID(spec.Dir)
	if exists(spec.Dir) && !exists(filepath.Join(spec.Dir, marker)) {
		items, err := os.ReadDir(spec.Dir)
		if err != nil || len(items) > 0 {
			return fmt.Errorf("cannot take down %s: it is no lab (no %s in it)", spec.Dir, marker)
		}
	}
	if err := lab.dropHosts(ctx); err != nil {
		return err
	}
	if err := removeTree(spec.Dir); err != nil {
		return err
	}
	return unregister(lab.state.ID)
}

// dropHosts kills and removes every host that the lab has or ever had.
func (l *Lab) dropHosts(ctx context.Context) error {
	if err := killCgroup(ctx, hostCgroup(l.cgroups, l.state.ID, "")); err != nil {
		return err
	}
	if err := removeCgroups(l.state.ID); err != nil {
		return err
	}
	names, err := filepath.Glob(l.hostDir("*"))
	if err != nil {
		return fmt.Errorf("cannot list hosts: %w", err)
	}
	for _, name := range names {
		if err := dropLock(filepath.Join(name, "root")); err != nil {
			return err
		}
	}
	if err := removeTree(filepath.Join(l.Dir, "hosts")); err != nil {
		return err
	}
	for _, file := range []string{"state.json", "state.json.new"} {
		if err := removeTree(filepath.Join(l.Dir, file)); err != nil {
			return err
		}
	}
	return dropNspawn(machineName(l.state.ID, "*"))
}

// dropHost kills and removes one host.
func (l *Lab) dropHost(ctx context.Context, name string) error {
	if err := l.stop(ctx, name); err != nil {
		return err
	}
	if err := removeTree(l.hostDir(name)); err != nil {
		return err
	}
	return dropNspawn(machineName(l.state.ID, name))
}

// stop kills all processes of one host and removes its control groups. Its files stay.
func (l *Lab) stop(ctx context.Context, name string) error {
	if err := killCgroup(ctx, hostCgroup(l.cgroups, l.state.ID, name)); err != nil {
		return err
	}
	if err := dropLock(filepath.Join(l.hostDir(name), "root")); err != nil {
		return err
	}
	return removeCgroups(l.state.ID, name)
}

// dropLock removes the lock file that a killed nspawn leaves for a root file system, which must be mounted.
func dropLock(root string) error {
	info, err := os.Stat(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	raw, ok := fileStat(info)
	if err != nil || !ok {
		return fmt.Errorf("cannot look at %s: %w", root, err)
	}
	path := fmt.Sprintf("/run/systemd/nspawn/locks/inode-%d:%d", raw.Dev, raw.Ino)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove lock of nspawn: %w", err)
	}
	return nil
}

// dropNspawn removes what a killed nspawn leaves outside of the lab's directory.
func dropNspawn(machine string) error {
	for _, kind := range []string{"propagate", "unix-export"} {
		paths, err := filepath.Glob(filepath.Join("/run/systemd/nspawn", kind, machine))
		if err != nil {
			return fmt.Errorf("cannot list what nspawn left: %w", err)
		}
		for _, path := range paths {
			if err := removeTree(path); err != nil {
				return err
			}
		}
	}
	return nil
}
