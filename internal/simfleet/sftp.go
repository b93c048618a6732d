package simfleet

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// files serves the SFTP subsystem: the library's own protocol code on the machine's disk, as the login user.
func (s *server) files(_ context.Context, ch ssh.Channel) {
	defer func() { _ = ch.Close() }()
	p, err := s.m.Proc(s.m.Login())
	if err != nil {
		return
	}
	h := &sftpFiles{fs: s.m.FS(), cred: p.Cred, received: func(n int) { s.received.Add(int64(n)) }}
	server := sftp.NewRequestServer(ch, sftp.Handlers{FileGet: h, FilePut: h, FileCmd: h, FileList: h}, sftp.WithStartDirectory(p.Dir))
	err = server.Serve()
	if errors.Is(err, io.EOF) {
		_ = server.Close()
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
}

// sftpFiles are the handlers of one SFTP session.
type sftpFiles struct {
	fs       *memfs.FS
	cred     memfs.Cred
	received func(n int)
}

var (
	_ sftp.OpenFileWriter       = (*sftpFiles)(nil)
	_ sftp.PosixRenameFileCmder = (*sftpFiles)(nil)
	_ sftp.LstatFileLister      = (*sftpFiles)(nil)
	_ sftp.ReadlinkFileLister   = (*sftpFiles)(nil)
)

// sftpFile is an open file that counts what is written to it.
type sftpFile struct {
	*memfs.File

	received func(n int)
}

// WriteAt writes at off, as io.WriterAt.
func (f sftpFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	f.received(n)
	return n, err
}

func (s *sftpFiles) open(r *sftp.Request) (sftpFile, error) {
	flags := r.Pflags()
	mode := os.O_RDONLY
	switch {
	case flags.Read && flags.Write:
		mode = os.O_RDWR
	case flags.Write:
		mode = os.O_WRONLY
	}
	for _, f := range []struct {
		set  bool
		flag int
	}{{flags.Creat, os.O_CREATE}, {flags.Trunc, os.O_TRUNC}, {flags.Excl, os.O_EXCL}, {flags.Append, os.O_APPEND}} {
		if f.set {
			mode |= f.flag
		}
	}
	perm := fs.FileMode(0o644)
	if r.AttrFlags().Permissions {
		perm = r.Attributes().FileMode().Perm() &^ 0o022
	}
	f, err := s.fs.Open(s.cred, r.Filepath, mode, perm)
	return sftpFile{f, s.received}, err
}

// Fileread opens a file for reading.
func (s *sftpFiles) Fileread(r *sftp.Request) (io.ReaderAt, error) { return s.open(r) }

// Filewrite opens a file for writing.
func (s *sftpFiles) Filewrite(r *sftp.Request) (io.WriterAt, error) { return s.open(r) }

// OpenFile opens a file for both.
func (s *sftpFiles) OpenFile(r *sftp.Request) (sftp.WriterAtReaderAt, error) { return s.open(r) }

// Filecmd changes names and attributes.
func (s *sftpFiles) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Setstat":
		return s.setstat(r)
	case "Rename":
		// SFTP's own rename never replaces a file; the POSIX one does.
		if _, err := s.fs.Lstat(s.cred, r.Target); err == nil {
			return os.ErrExist
		}
		return s.fs.Rename(s.cred, r.Filepath, r.Target)
	case "Rmdir", "Remove":
		return s.fs.Remove(s.cred, r.Filepath)
	case "Mkdir":
		return s.fs.Mkdir(s.cred, r.Filepath, 0o755)
	case "Symlink":
		return s.fs.Symlink(s.cred, r.Filepath, r.Target)
	}
	return sftp.ErrSSHFxOpUnsupported
}

// PosixRename replaces a file that is there.
func (s *sftpFiles) PosixRename(r *sftp.Request) error {
	return s.fs.Rename(s.cred, r.Filepath, r.Target)
}

func (s *sftpFiles) setstat(r *sftp.Request) error {
	flags, attrs := r.AttrFlags(), r.Attributes()
	if flags.Size {
		if err := s.fs.Truncate(s.cred, r.Filepath, int64(attrs.Size)); err != nil { // checked by the disk
			return err
		}
	}
	if flags.Permissions {
		if err := s.fs.Chmod(s.cred, r.Filepath, attrs.FileMode()); err != nil {
			return err
		}
	}
	if flags.UidGid {
		if err := s.fs.Chown(s.cred, r.Filepath, int(attrs.UID), int(attrs.GID)); err != nil {
			return err
		}
	}
	if flags.Acmodtime {
		return s.fs.Chtimes(s.cred, r.Filepath, attrs.ModTime())
	}
	return nil
}

// Filelist lists and describes.
func (s *sftpFiles) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	switch r.Method {
	case "List":
		infos, err := s.fs.ReadDir(s.cred, r.Filepath)
		return lister(infos), err
	case "Stat":
		info, err := s.fs.Stat(s.cred, r.Filepath)
		return lister{info}, err
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

// Lstat describes a link itself.
func (s *sftpFiles) Lstat(r *sftp.Request) (sftp.ListerAt, error) {
	info, err := s.fs.Lstat(s.cred, r.Filepath)
	return lister{info}, err
}

// Readlink tells where a link leads.
func (s *sftpFiles) Readlink(name string) (string, error) { return s.fs.Readlink(s.cred, name) }

type lister []memfs.Info

// ListAt hands out entries from an offset, as io.ReaderAt does.
func (l lister) ListAt(out []os.FileInfo, off int64) (int, error) {
	n := 0
	for ; n < len(out) && off+int64(n) < int64(len(l)); n++ {
		out[n] = l[off+int64(n)]
	}
	if n < len(out) {
		return n, io.EOF
	}
	return n, nil
}
