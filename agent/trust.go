// Package agent is the host's side: it judges the allow-file by the host's own clock, runs single commands as
// transient systemd units that outlive the connection, and keeps apt and dpkg from changing kibotos packages
// outside a window. It knows its own host only.
package agent

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Trust says whom a file must come from to be believed. Every directory from Base down is opened by itself,
// without following links, and checked on its descriptor, so nothing can be exchanged between check and use.
type Trust struct {
	Base string // where the walk begins: "/" on a host
	UID  uint32 // owner of the file and of every directory above it: 0 on a host
	GID  uint32 // group of the file
}

// Root is the trust of a host: from / down, everything root's (Z2).
func Root() Trust { return Trust{Base: "/"} }

// Read returns the contents of the file at the absolute path, or a *gate.Denial that says why it does not
// count (Z2): every defect has its own code.
func (t Trust) Read(path string) ([]byte, error) {
	rel, err := filepath.Rel(t.Base, path)
	if err != nil || !filepath.IsAbs(path) || rel == "." || strings.HasPrefix(rel, "..") {
		return nil, gate.Deny(gate.CodeUnreadable, "%s is not an absolute path below %s", path, t.Base)
	}
	dir, err := t.directory(rel)
	if err != nil {
		if v := gate.Closed(err); v.Code == gate.CodeMissing {
			return nil, openError(path, unix.ENOENT) // whichever step is missing, the file is what is looked for
		}
		return nil, err
	}
	defer closeFD(dir)
	return t.file(dir, path)
}

// directory opens the directory that holds rel, checking each one on the way down. The caller closes it.
func (t Trust) directory(rel string) (int, error) {
	at := t.Base
	fd, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, openError(at, err)
	}
	if err := t.checkDirectory(fd, at); err != nil {
		closeFD(fd)
		return -1, err
	}
	steps := strings.Split(filepath.Dir(rel), "/")
	for _, step := range steps {
		if step == "." {
			continue
		}
		at = filepath.Join(at, step)
		next, err := unix.Openat(fd, step, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		closeFD(fd)
		if err != nil {
			return -1, openError(at, err)
		}
		fd = next
		if err := t.checkDirectory(fd, at); err != nil {
			closeFD(fd)
			return -1, err
		}
	}
	return fd, nil
}

func (t Trust) checkDirectory(fd int, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return gate.Deny(gate.CodeUnreadable, "cannot stat %s: %v", at, err)
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return gate.Deny(gate.CodeSymlink, "%s is a symbolic link", at)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return gate.Deny(gate.CodeNotRegular, "%s is not a directory", at)
	case st.Uid != t.UID:
		return gate.Deny(gate.CodeDirOwner, "directory %s belongs to user %d, not %d", at, st.Uid, t.UID)
	case st.Mode&0o022 != 0:
		return gate.Deny(gate.CodeDirWritable, "directory %s has mode %04o: others than its owner can write there", at, st.Mode&0o7777)
	}
	return nil
}

// file opens, checks and reads the last step of path inside dir.
func (t Trust) file(dir int, path string) ([]byte, error) {
	// O_NONBLOCK: opening a named pipe must not hang the gate.
	fd, err := unix.Openat(dir, filepath.Base(path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, openError(path, err)
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, gate.Deny(gate.CodeUnreadable, "cannot stat %s: %v", path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, gate.Deny(gate.CodeNotRegular, "%s is not a regular file", path)
	case st.Uid != t.UID || st.Gid != t.GID:
		return nil, gate.Deny(gate.CodeOwner, "%s belongs to %d:%d, not %d:%d", path, st.Uid, st.Gid, t.UID, t.GID)
	case st.Mode&0o7777 != 0o644:
		return nil, gate.Deny(gate.CodeMode, "%s has mode %04o, not 0644", path, st.Mode&0o7777)
	case st.Nlink != 1:
		return nil, gate.Deny(gate.CodeHardLink, "%s has %d names, so it could be changed through another one", path, st.Nlink)
	case st.Size > gate.MaxSize:
		return nil, gate.Deny(gate.CodeTooBig, "%s is larger than %d bytes", path, gate.MaxSize)
	}
	data, err := io.ReadAll(io.LimitReader(descriptor(fd), gate.MaxSize+1))
	if err != nil {
		return nil, gate.Deny(gate.CodeUnreadable, "cannot read %s: %v", path, err)
	}
	return data, nil
}

// descriptor reads a file descriptor that its maker goes on owning.
type descriptor int

// Read implements io.Reader.
func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("cannot read: %w", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func openError(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return gate.Deny(gate.CodeMissing, "there is no %s", path)
	case errors.Is(err, unix.ELOOP):
		return gate.Deny(gate.CodeSymlink, "%s is a symbolic link", path)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return gate.Deny(gate.CodeNotRegular, "%s is not a regular file", path)
	}
	return gate.Deny(gate.CodeUnreadable, "cannot open %s: %v", path, err)
}

// closeFD closes a descriptor that was only read from; there is nothing to lose when that fails.
func closeFD(fd int) { _ = unix.Close(fd) }
