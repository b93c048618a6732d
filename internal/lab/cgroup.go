//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupName is the control group of all labs. A group for each host is what keeps the systemd of one from
// counting and killing the processes of another, and it finds every process of a lab again.
const cgroupName = "kibo-lab"

// cgroupRoot is where the unified hierarchy is mounted.
func cgroupRoot() (string, error) {
	table, err := readMounts()
	if err != nil {
		return "", err
	}
	points := table.ofKind("cgroup2")
	if len(points) == 0 {
		return "", errors.New("cannot find a cgroup2 file system: the lab's hosts need one, see cgroups(7)")
	}
	return points[0], nil
}

// hostCgroup is the directory of a host's control group; host "" is the group of the whole lab.
func hostCgroup(root, id, host string) string { return filepath.Join(root, cgroupName, id, host) }

// cgroupPIDs lists every process in the group and below it. A group that is gone has none.
func cgroupPIDs(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || item.Name() != "cgroup.procs" {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		for _, line := range strings.Fields(string(data)) {
			// Zero is a process of a namespace that this one cannot see; kill(2) would take it for this group.
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list processes of %s: %w", dir, err)
	}
	slices.Sort(pids)
	return pids, nil
}

// killCgroup kills every process of the group, and waits until all are gone.
func killCgroup(ctx context.Context, dir string) error {
	limited, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		pids, err := cgroupPIDs(dir)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("cannot kill process %d of %s: %w", pid, dir, err)
			}
		}
		if err := pause(limited, 20*time.Millisecond); err != nil {
			return fmt.Errorf("cannot end processes %v of %s: %w", pids, dir, err)
		}
	}
}

// removeCgroups removes a group of the lab from every hierarchy: nspawn makes the same path in the old ones.
func removeCgroups(path ...string) error {
	table, err := readMounts()
	if err != nil {
		return err
	}
	for _, point := range append(table.ofKind("cgroup2"), table.ofKind("cgroup")...) {
		dir := filepath.Join(append([]string{point, cgroupName}, path...)...)
		var dirs []string
		err := filepath.WalkDir(dir, func(path string, item fs.DirEntry, err error) error {
			if err == nil && item.IsDir() {
				dirs = append(dirs, path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot list control groups: %w", err)
		}
		slices.Reverse(dirs) // the innermost first
		for _, one := range dirs {
			if err := unix.Rmdir(one); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("cannot remove control group %s: %w", one, err)
			}
		}
		_ = unix.Rmdir(filepath.Join(point, cgroupName)) // stays while another lab is there
	}
	return nil
}
