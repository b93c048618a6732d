package memfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
)

// File is an open file. Safe for concurrent use.
type File struct {
	fs     *FS
	n      *node
	path   string
	mu     sync.Mutex // guards pos
	pos    int64
	read   bool
	write  bool
	append bool
}

// Open opens p with the flags of os.OpenFile and creates it with perm if asked for.
func (f *FS) Open(c Cred, p string, flag int, perm fs.FileMode) (*File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.open(c, p, flag, perm)
	if err != nil {
		return nil, pathErr("open", p, err)
	}
	return &File{
		fs: f, n: n, path: p,
		read:   flag&(os.O_WRONLY) == 0,
		write:  flag&(os.O_WRONLY|os.O_RDWR) != 0,
		append: flag&os.O_APPEND != 0,
	}, nil
}

func (f *FS) open(c Cred, p string, flag int, perm fs.FileMode) (*node, error) {
	n, dir, name, err := f.find(c, p, flag&os.O_EXCL == 0)
	if err != nil {
		return nil, err
	}
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case n == nil:
		n = f.newNode(perm.Perm(), c)
		return n, f.add(c, dir, name, n)
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case n.mode.IsDir() && writes:
		return nil, syscall.EISDIR
	case writes && !n.allows(c, mayWrite), flag&os.O_WRONLY == 0 && !n.allows(c, mayRead):
		return nil, syscall.EACCES
	}
	if writes && flag&os.O_TRUNC != 0 {
		f.setData(n, nil)
	}
	return n, nil
}

// setData replaces the content; the slice is shared and never written in place.
func (f *FS) setData(n *node, data []byte) {
	f.used += int64(len(data)) - int64(len(n.data))
	n.data, n.owned, n.mtime = data, false, f.now()
}

// ReadFile returns the content of p. The slice is shared: do not write into it.
func (f *FS) ReadFile(c Cred, p string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.open(c, p, os.O_RDONLY, 0)
	if err == nil && n.mode.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathErr("open", p, err)
	}
	n.owned = false // whoever writes next works on a copy
	return n.data, nil
}

// WriteFile makes data the content of p; the slice is shared with the caller, who must not write into it.
func (f *FS) WriteFile(c Cred, p string, data []byte, perm fs.FileMode) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.open(c, p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err == nil && len(data) > 0 && (f.full || f.used+int64(len(data)) > f.size) {
		err = syscall.ENOSPC
	}
	if err != nil {
		return pathErr("open", p, err)
	}
	f.setData(n, data)
	return nil
}

// Truncate sets the length of p.
func (f *FS) Truncate(c Cred, p string, size int64) error {
	h, err := f.Open(c, p, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return h.Truncate(size)
}

// Truncate sets the length of the file.
func (h *File) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if size < 0 {
		return pathErr("truncate", h.path, syscall.EINVAL)
	}
	data := h.n.data
	if size <= int64(len(data)) {
		h.fs.setData(h.n, slices.Clone(data[:size]))
		return nil
	}
	return h.grow(size)
}

// grow makes the content size bytes long, with zeros at the end.
func (h *File) grow(size int64) error {
	more := size - int64(len(h.n.data))
	if h.fs.full || h.fs.used+more > h.fs.size {
		return pathErr("write", h.path, syscall.ENOSPC)
	}
	if !h.n.owned {
		h.n.data, h.n.owned = slices.Clone(h.n.data), true
	}
	h.n.data = append(h.n.data, make([]byte, more)...)
	h.fs.used += more
	return nil
}

// ReadAt reads at off, as io.ReaderAt.
func (h *File) ReadAt(p []byte, off int64) (int, error) {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	switch {
	case !h.read:
		return 0, pathErr("read", h.path, syscall.EBADF)
	case h.n.mode.IsDir():
		return 0, pathErr("read", h.path, syscall.EISDIR)
	case off < 0:
		return 0, pathErr("read", h.path, syscall.EINVAL)
	case off >= int64(len(h.n.data)):
		return 0, io.EOF
	}
	n := copy(p, h.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes at off, as io.WriterAt.
func (h *File) WriteAt(p []byte, off int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return h.writeAt(p, off)
}

func (h *File) writeAt(p []byte, off int64) (int, error) {
	if !h.write {
		return 0, pathErr("write", h.path, syscall.EBADF)
	}
	if off < 0 {
		return 0, pathErr("write", h.path, syscall.EINVAL)
	}
	if len(p) > 0 && h.fs.full {
		return 0, pathErr("write", h.path, syscall.ENOSPC)
	}
	if end := off + int64(len(p)); end > int64(len(h.n.data)) {
		if err := h.grow(end); err != nil {
			return 0, err
		}
	} else if !h.n.owned {
		h.n.data, h.n.owned = slices.Clone(h.n.data), true
	}
	h.n.mtime = h.fs.now()
	return copy(h.n.data[off:], p), nil
}

// Read reads from where the last Read or Write ended.
func (h *File) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.ReadAt(p, h.pos)
	h.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Write writes where the last Read or Write ended, or at the end of a file opened for appending.
func (h *File) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if h.append {
		h.pos = int64(len(h.n.data))
	}
	n, err := h.writeAt(p, h.pos)
	h.pos += int64(n)
	return n, err
}

// Info describes the open file.
func (h *File) Info() Info {
	h.fs.mu.RLock()
	defer h.fs.mu.RUnlock()
	return h.n.info(h.path)
}

// Close ends the use of the file.
func (h *File) Close() error { return nil }
