// Package memfs is a file system in memory with owners, modes, symbolic links and a size limit: the disk of
// one simulated host. It checks permissions as Linux does, and its errors carry the same errno.
package memfs

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Cred is who asks. The zero value is root, who may do everything.
type Cred struct{ UID, GID int }

// DefaultSize is the size of a new disk in bytes.
const DefaultSize = 64 << 30

// Inodes is how many files every disk has room for.
const Inodes = 1 << 20

// maxLinks is how many symbolic links one path may lead through (Linux: 40).
const maxLinks = 40

// FS is one disk. Safe for concurrent use. Paths are absolute; relative ones are taken from "/".
type FS struct {
	mu   sync.RWMutex
	root *node
	now  func() time.Time
	size int64 // bytes
	used int64 // bytes in regular files
	full bool  // every write fails with ENOSPC
	gen  uint64
}

// node is one inode. data is shared between disks until the first write in place (owned says whose it is).
type node struct {
	ino    uint64
	mode   fs.FileMode // type and permission bits
	uid    int
	gid    int
	mtime  time.Time
	data   []byte
	owned  bool
	target string           // of a symbolic link
	kids   map[string]*node // of a directory
}

// New makes an empty disk whose clock is now.
func New(now func() time.Time) *FS {
	f := &FS{now: now, size: DefaultSize}
	f.root = f.newNode(fs.ModeDir|0o755, Cred{})
	return f
}

// SetFull makes every further write fail with "no space left on device", or lets writes through again.
func (f *FS) SetFull(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

// SetSize sets the size of the disk in bytes.
func (f *FS) SetSize(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size = n
}

// Free returns the bytes and the inodes that are left.
func (f *FS) Free() (bytes, inodes int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.full || f.used >= f.size {
		return 0, Inodes - int64(f.gen)
	}
	return f.size - f.used, Inodes - int64(f.gen)
}

// Size returns the size of the disk in bytes.
func (f *FS) Size() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.size
}

func (f *FS) newNode(mode fs.FileMode, c Cred) *node {
	f.gen++
	n := &node{ino: f.gen, mode: mode, uid: c.UID, gid: c.GID, mtime: f.now()}
	if mode.IsDir() {
		n.kids = map[string]*node{}
	}
	return n
}

// Permission bits of one access.
const (
	mayRead  = 4
	mayWrite = 2
	mayExec  = 1
)

// allows is the owner-group-other rule; root may do everything except execute a file without any x bit.
func (n *node) allows(c Cred, want fs.FileMode) bool {
	perm := n.mode.Perm()
	if c.UID == 0 {
		return want&mayExec == 0 || n.mode.IsDir() || perm&0o111 != 0
	}
	switch {
	case c.UID == n.uid:
		perm >>= 6
	case c.GID == n.gid:
		perm >>= 3
	}
	return perm&want == want
}

func split(p string) []string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

// walk follows p and returns its node. With follow false a symbolic link at the end is not followed.
func (f *FS) walk(c Cred, p string, follow bool) (*node, error) {
	n, _, _, err := f.find(c, p, follow)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	return n, err
}

// find follows p and returns its node (nil if the last name is missing), the directory it lies in and its name there.
func (f *FS) find(c Cred, p string, follow bool) (n, dir *node, name string, err error) {
	parts := split(p)
	stack := []*node{f.root}
	links := 0
	for len(parts) > 0 {
		cur := stack[len(stack)-1]
		name, parts = parts[0], parts[1:]
		if name == "." || name == ".." {
			if name == ".." && len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			continue
		}
		if !cur.mode.IsDir() {
			return nil, nil, "", syscall.ENOTDIR
		}
		if !cur.allows(c, mayExec) {
			return nil, nil, "", syscall.EACCES
		}
		next, ok := cur.kids[name]
		if !ok {
			if len(parts) > 0 {
				return nil, nil, "", syscall.ENOENT
			}
			return nil, cur, name, nil
		}
		if next.mode&fs.ModeSymlink != 0 && (follow || len(parts) > 0) {
			if links++; links > maxLinks {
				return nil, nil, "", syscall.ELOOP
			}
			if strings.HasPrefix(next.target, "/") {
				stack = stack[:1]
			}
			parts = append(slices.DeleteFunc(strings.Split(next.target, "/"), func(s string) bool { return s == "" }), parts...)
			continue
		}
		stack = append(stack, next)
	}
	n = stack[len(stack)-1]
	if len(stack) > 1 {
		dir = stack[len(stack)-2]
	}
	return n, dir, name, nil
}

func pathErr(op, p string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p, Err: err}
}

// add puts n into dir as name.
func (f *FS) add(c Cred, dir *node, name string, n *node) error {
	if !dir.mode.IsDir() {
		return syscall.ENOTDIR
	}
	if !dir.allows(c, mayWrite|mayExec) {
		return syscall.EACCES
	}
	if f.full || f.used > f.size {
		return syscall.ENOSPC
	}
	dir.kids[name] = n
	dir.mtime = f.now()
	return nil
}

// mayDelete is the rule for taking an entry out of a directory, the sticky bit included.
func mayDelete(c Cred, dir, n *node) error {
	if dir == nil {
		return syscall.EBUSY
	}
	if !dir.allows(c, mayWrite|mayExec) {
		return syscall.EACCES
	}
	if dir.mode&fs.ModeSticky != 0 && c.UID != 0 && c.UID != n.uid && c.UID != dir.uid {
		return syscall.EPERM
	}
	return nil
}

func sortedNames(m map[string]*node) []string { return slices.Sorted(maps.Keys(m)) }
