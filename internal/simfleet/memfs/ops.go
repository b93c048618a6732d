package memfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// Stat follows symbolic links.
func (f *FS) Stat(c Cred, p string) (Info, error) { return f.stat(c, p, true) }

// Lstat does not follow a symbolic link at the end.
func (f *FS) Lstat(c Cred, p string) (Info, error) { return f.stat(c, p, false) }

func (f *FS) stat(c Cred, p string, follow bool) (Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.walk(c, p, follow)
	if err != nil {
		return Info{}, pathErr("stat", p, err)
	}
	return n.info(path.Clean("/" + p)), nil
}

// Exists reports whether there is something at p, as root sees it.
func (f *FS) Exists(p string) bool {
	_, err := f.Lstat(Cred{}, p)
	return err == nil
}

// Access checks the permission bits want (4 read, 2 write, 1 execute) on p.
func (f *FS) Access(c Cred, p string, want fs.FileMode) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.walk(c, p, true)
	if err == nil && !n.allows(c, want) {
		err = syscall.EACCES
	}
	return pathErr("access", p, err)
}

// Mkdir makes one directory.
func (f *FS) Mkdir(c Cred, p string, perm fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pathErr("mkdir", p, f.mkdir(c, p, perm))
}

func (f *FS) mkdir(c Cred, p string, perm fs.FileMode) error {
	n, dir, name, err := f.find(c, p, false)
	if err != nil {
		return err
	}
	if n != nil {
		return syscall.EEXIST
	}
	return f.add(c, dir, name, f.newNode(fs.ModeDir|perm, c))
}

// MkdirAll makes a directory and those above it that are missing. One that is there is left as it is.
func (f *FS) MkdirAll(c Cred, p string, perm fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := ""
	for _, name := range split(p) {
		at += "/" + name
		n, err := f.walk(c, at, true)
		if errors.Is(err, syscall.ENOENT) {
			err = f.mkdir(c, at, perm)
		} else if err == nil && !n.mode.IsDir() {
			err = syscall.ENOTDIR
		}
		if err != nil {
			return pathErr("mkdir", at, err)
		}
	}
	return nil
}

// Remove takes away a file, a link or an empty directory.
func (f *FS) Remove(c Cred, p string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, dir, name, err := f.find(c, p, false)
	if err == nil && n == nil {
		err = syscall.ENOENT
	}
	if err == nil {
		err = mayDelete(c, dir, n)
	}
	if err == nil && len(n.kids) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return pathErr("remove", p, err)
	}
	f.used -= int64(len(n.data))
	delete(dir.kids, name)
	dir.mtime = f.now()
	return nil
}

// RemoveAll takes away p and everything below it; nothing there is no error.
func (f *FS) RemoveAll(c Cred, p string) error {
	i, err := f.Lstat(c, p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if i.IsDir() {
		kids, err := f.ReadDir(c, p)
		if err != nil {
			return err
		}
		for _, k := range kids {
			if err := f.RemoveAll(c, path.Join(p, k.Name())); err != nil {
				return err
			}
		}
	}
	return f.Remove(c, p)
}

// Rename moves from to to and replaces a file that is there.
func (f *FS) Rename(c Cred, from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pathErr("rename", from, f.rename(c, from, to))
}

func (f *FS) rename(c Cred, from, to string) error {
	n, dir, name, err := f.find(c, from, false)
	if err != nil {
		return err
	}
	if n == nil {
		return syscall.ENOENT
	}
	old, todir, toname, err := f.find(c, to, false)
	if err != nil {
		return err
	}
	if old == n {
		return nil
	}
	if n.mode.IsDir() && strings.HasPrefix(path.Clean("/"+to)+"/", path.Clean("/"+from)+"/") {
		return syscall.EINVAL
	}
	if err := mayDelete(c, dir, n); err != nil {
		return err
	}
	if old != nil {
		if err := replaceable(n, old); err != nil {
			return err
		}
		if err := mayDelete(c, todir, old); err != nil {
			return err
		}
	}
	if todir == nil {
		return syscall.EBUSY
	}
	if !todir.allows(c, mayWrite|mayExec) {
		return syscall.EACCES
	}
	if old != nil {
		f.used -= int64(len(old.data))
	}
	delete(dir.kids, name)
	todir.kids[toname] = n
	dir.mtime, todir.mtime = f.now(), f.now()
	return nil
}

func replaceable(n, old *node) error {
	switch {
	case old.mode.IsDir() && !n.mode.IsDir():
		return syscall.EISDIR
	case !old.mode.IsDir() && n.mode.IsDir():
		return syscall.ENOTDIR
	case len(old.kids) > 0:
		return syscall.ENOTEMPTY
	}
	return nil
}

// Symlink makes p a symbolic link to target.
func (f *FS) Symlink(c Cred, target, p string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, dir, name, err := f.find(c, p, false)
	if err == nil && n != nil {
		err = syscall.EEXIST
	}
	if err == nil {
		link := f.newNode(fs.ModeSymlink|0o777, c)
		link.target = target
		err = f.add(c, dir, name, link)
	}
	return pathErr("symlink", p, err)
}

// Readlink returns where a symbolic link leads.
func (f *FS) Readlink(c Cred, p string) (string, error) {
	i, err := f.Lstat(c, p)
	if err != nil {
		return "", err
	}
	if i.mode&fs.ModeSymlink == 0 {
		return "", pathErr("readlink", p, syscall.EINVAL)
	}
	return i.link, nil
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(c Cred, p string) ([]Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.walk(c, p, true)
	if err == nil && !n.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil && !n.allows(c, mayRead) {
		err = syscall.EACCES
	}
	if err != nil {
		return nil, pathErr("open", p, err)
	}
	out := make([]Info, 0, len(n.kids))
	for _, name := range sortedNames(n.kids) {
		out = append(out, n.kids[name].info(name))
	}
	return out, nil
}

// Chmod sets the permission bits (and sticky, setuid, setgid).
func (f *FS) Chmod(c Cred, p string, mode fs.FileMode) error {
	const bits = fs.ModePerm | fs.ModeSticky | fs.ModeSetuid | fs.ModeSetgid
	return f.change("chmod", c, p, func(n *node) { n.mode = n.mode&^bits | mode&bits })
}

// Chown sets owner and group; only root may.
func (f *FS) Chown(c Cred, p string, uid, gid int) error {
	if c.UID != 0 {
		return pathErr("chown", p, syscall.EPERM)
	}
	return f.change("chown", c, p, func(n *node) { n.uid, n.gid = uid, gid })
}

// Chtimes sets the time of the last change.
func (f *FS) Chtimes(c Cred, p string, mtime time.Time) error {
	return f.change("chtimes", c, p, func(n *node) { n.mtime = mtime })
}

func (f *FS) change(op string, c Cred, p string, do func(*node)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.walk(c, p, true)
	if err == nil && c.UID != 0 && c.UID != n.uid {
		err = syscall.EPERM
	}
	if err == nil {
		do(n)
	}
	return pathErr(op, p, err)
}
