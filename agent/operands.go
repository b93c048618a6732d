package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoFile: what is in there cannot be looked at without taking it from dpkg.
var errNoFile = errors.New("is neither a file nor a directory, so what is in it cannot be told")

// seenBy is where an operand of another process leads, as a path that can be used here: relative to its
// directory, and its own descriptors where a path names the reader's.
func (p Procs) seenBy(pid int, operand string) string {
	if operand == "/dev/stdin" {
		return p.file(pid, "fd/0")
	}
	for prefix, dir := range map[string]string{"/dev/fd/": "fd", "/proc/self/": "", "/proc/thread-self/": ""} {
		if rest, ok := strings.CutPrefix(operand, prefix); ok {
			return p.file(pid, dir) + "/" + rest
		}
	}
	if filepath.IsAbs(operand) {
		return operand
	}
	return p.cwd(pid) + "/" + operand // not cleaned: cwd is a link, and ".." after it must be resolved by the kernel
}

// debsAt lists the .debs at one operand. What does not exist is left to dpkg to complain about.
func debsAt(path string, recursive bool) ([]string, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot look at %s: %w", path, err)
	case st.Mode().IsRegular():
		return []string{path}, nil
	case !st.IsDir():
		return nil, fmt.Errorf("%s %w", path, errNoFile)
	case !recursive:
		return nil, nil
	}
	return debsBelow(path, map[[2]uint64]bool{})
}

// debsBelow looks through a directory as dpkg does, links to files and directories included. seen ends loops.
func debsBelow(dir string, seen map[[2]uint64]bool) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot look through %s: %w", dir, err)
	}
	var debs []string
	for _, e := range entries {
		path := dir + "/" + e.Name()
		var st unix.Stat_t
		switch err := unix.Stat(path, &st); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP):
			continue // a link to nowhere: dpkg cannot unpack it either
		case err != nil:
			return nil, fmt.Errorf("cannot look at %s: %w", path, err)
		}
		id := [2]uint64{st.Dev, st.Ino}
		switch {
		case st.Mode&unix.S_IFMT == unix.S_IFREG && strings.HasSuffix(path, ".deb"):
			debs = append(debs, path)
		case st.Mode&unix.S_IFMT == unix.S_IFDIR && !seen[id]:
			seen[id] = true
			below, err := debsBelow(path, seen)
			if err != nil {
				return nil, err
			}
			debs = append(debs, below...)
		}
	}
	return debs, nil
}
