package memfs

import (
	"io/fs"
	"path"
	"time"
)

// Info describes one file. It implements fs.FileInfo and fs.DirEntry, and tells pkg/sftp the owner.
type Info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	uid   int
	gid   int
	ino   uint64
	link  string
}

func (n *node) info(name string) Info {
	return Info{
		name: path.Base(name), size: n.length(), mode: n.mode, mtime: n.mtime,
		uid: n.uid, gid: n.gid, ino: n.ino, link: n.target,
	}
}

func (n *node) length() int64 {
	switch {
	case n.mode.IsDir():
		return 4096
	case n.mode&fs.ModeSymlink != 0:
		return int64(len(n.target))
	}
	return int64(len(n.data))
}

// Name is the base name.
func (i Info) Name() string { return i.name }

// Size is the length in bytes.
func (i Info) Size() int64 { return i.size }

// Mode is the type and the permission bits.
func (i Info) Mode() fs.FileMode { return i.mode }

// ModTime is when the content changed last.
func (i Info) ModTime() time.Time { return i.mtime }

// IsDir reports whether it is a directory.
func (i Info) IsDir() bool { return i.mode.IsDir() }

// Sys is nil: there is no operating system below.
func (i Info) Sys() any { return nil }

// Type is the type bits of the mode.
func (i Info) Type() fs.FileMode { return i.mode.Type() }

// Info returns i itself.
func (i Info) Info() (fs.FileInfo, error) { return i, nil }

// Uid is the owner; pkg/sftp looks for this name.
func (i Info) Uid() uint32 { return uint32(i.uid) } // small numbers; the name is pkg/sftp's

// Gid is the group; pkg/sftp looks for this name.
func (i Info) Gid() uint32 { return uint32(i.gid) } // small numbers; the name is pkg/sftp's

// Target is where a symbolic link leads, "" for anything else.
func (i Info) Target() string { return i.link }

// Inode is the number of the file on its disk.
func (i Info) Inode() uint64 { return i.ino }
