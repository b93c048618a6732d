//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one line of mountinfo, as far as the lab needs it.
type mount struct {
	point   string
	kind    string // file system type
	options string // of the super block
}

// mounts is the mount table, in the order in which things were mounted.
type mounts []mount

// readMounts reads the mount table of this process.
func readMounts() (mounts, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read the mount table: %w", err)
	}
	return parseMounts(string(data)), nil
}

// parseMounts reads mountinfo(5). Lines it cannot read are left out.
func parseMounts(text string) mounts {
	var all mounts
	for _, line := range strings.Split(text, "\n") {
		left, right, ok := strings.Cut(line, " - ")
		fields, tail := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 6 || len(tail) < 3 {
			continue
		}
		unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
		all = append(all, mount{point: unescape.Replace(fields[4]), kind: tail[0], options: tail[2]})
	}
	return all
}

// lower reports whether an overlay stands on the directory.
func (m mounts) lower(dir string) bool {
	for _, one := range m {
		if one.kind != "overlay" {
			continue
		}
		for _, option := range strings.Split(one.options, ",") {
			if option == "lowerdir="+dir {
				return true
			}
		}
	}
	return false
}

// below lists mount points at or below the directory, the last mounted first.
func (m mounts) below(dir string) []string {
	var points []string
	for i := len(m) - 1; i >= 0; i-- {
		if m[i].point == dir || strings.HasPrefix(m[i].point, dir+"/") {
			points = append(points, m[i].point)
		}
	}
	return points
}

// ofKind lists the mount points of a file system type.
func (m mounts) ofKind(kind string) []string {
	var points []string
	for _, one := range m {
		if one.kind == kind {
			points = append(points, one.point)
		}
	}
	return points
}

// mountOverlay puts a host's own layer over its base. The layer is never synced to disk: a lab is thrown
// away, and dpkg syncs so often that it would otherwise be most of the time.
func mountOverlay(base, dir string) error {
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return fmt.Errorf("cannot make the layer of a host: %w", err)
		}
	}
	// Left by a machine that went down with the layer mounted; the kernel would refuse the layer.
	if err := os.RemoveAll(filepath.Join(dir, "work", "work", "incompat")); err != nil {
		return fmt.Errorf("cannot clear the layer of a host: %w", err)
	}
	options := "lowerdir=" + base + ",upperdir=" + filepath.Join(dir, "upper") + ",workdir=" + filepath.Join(dir, "work")
	root := filepath.Join(dir, "root")
	err := unix.Mount("overlay", root, "overlay", 0, options+",volatile")
	if errors.Is(err, unix.EINVAL) { // a kernel before 5.10
		err = unix.Mount("overlay", root, "overlay", 0, options)
	}
	if err != nil {
		return fmt.Errorf("cannot mount overlay at %s: %w", root, err)
	}
	return nil
}

// unmountBelow unmounts everything at or below the directory.
func unmountBelow(dir string) error {
	for range 8 { // mounts can lie over each other
		table, err := readMounts()
		if err != nil {
			return err
		}
		points := table.below(dir)
		if len(points) == 0 {
			return nil
		}
		for _, point := range points {
			if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("cannot unmount %s: %w", point, err)
			}
		}
	}
	return fmt.Errorf("cannot unmount everything below %s", dir)
}

// removeTree deletes a directory, but first makes sure that nothing foreign is mounted in it.
func removeTree(dir string) error {
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove %s: %w", dir, err)
	}
	return nil
}
