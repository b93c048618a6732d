package memfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

func newDisk(t *testing.T) *FS {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	f := New(func() time.Time { return now })
	for _, err := range []error{
		f.MkdirAll(Cred{}, "/etc/app", 0o755), f.WriteFile(Cred{}, "/etc/app/conf", []byte("conf"), 0o640),
		f.Chown(Cred{}, "/etc/app/conf", 0, 7), f.Mkdir(Cred{}, "/home", 0o755), f.Mkdir(Cred{}, "/home/u", 0o700), f.Chown(Cred{}, "/home/u", 1, 1),
		f.Mkdir(Cred{}, "/tmp", 0o777), f.Chmod(Cred{}, "/tmp", 0o777|fs.ModeSticky), f.WriteFile(Cred{2, 2}, "/tmp/of-2", nil, 0o644),
		f.Symlink(Cred{}, "../etc/app", "/home/link"), f.Symlink(Cred{}, "loop", "/tmp/loop"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestWhoMayDoWhat(t *testing.T) {
	u, g := Cred{1, 1}, Cred{3, 7}
	for name, tc := range map[string]struct {
		do   func(f *FS) error
		want error
	}{
		"root reads":              {func(f *FS) error { _, err := f.ReadFile(Cred{}, "/etc/app/conf"); return err }, nil},
		"group reads":             {func(f *FS) error { _, err := f.ReadFile(g, "/etc/app/conf"); return err }, nil},
		"group does not write":    {func(f *FS) error { return f.WriteFile(g, "/etc/app/conf", nil, 0o644) }, syscall.EACCES},
		"others do not read":      {func(f *FS) error { _, err := f.ReadFile(u, "/etc/app/conf"); return err }, syscall.EACCES},
		"through a link":          {func(f *FS) error { _, err := f.ReadFile(g, "/home/link/conf"); return err }, nil},
		"a loop":                  {func(f *FS) error { _, err := f.ReadFile(Cred{}, "/tmp/loop"); return err }, syscall.ELOOP},
		"a loop itself":           {func(f *FS) error { _, err := f.Lstat(Cred{}, "/tmp/loop"); return err }, nil},
		"own home":                {func(f *FS) error { return f.WriteFile(u, "/home/u/x", nil, 0o644) }, nil},
		"another's home":          {func(f *FS) error { _, err := f.Stat(g, "/home/u/x"); return err }, syscall.EACCES},
		"new file in /etc":        {func(f *FS) error { return f.WriteFile(u, "/etc/x", nil, 0o644) }, syscall.EACCES},
		"sticky":                  {func(f *FS) error { return f.Remove(u, "/tmp/of-2") }, syscall.EPERM},
		"sticky, renamed over":    {func(f *FS) error { return f.Rename(u, "/tmp/loop", "/tmp/of-2") }, syscall.EPERM},
		"sticky, own":             {func(f *FS) error { return f.Remove(Cred{2, 2}, "/tmp/of-2") }, nil},
		"chown":                   {func(f *FS) error { return f.Chown(u, "/home/u", 0, 0) }, syscall.EPERM},
		"chmod of another's":      {func(f *FS) error { return f.Chmod(u, "/tmp/of-2", 0o777) }, syscall.EPERM},
		"directory that is there": {func(f *FS) error { return f.Mkdir(Cred{}, "/etc", 0o755) }, syscall.EEXIST},
		"directory in a file":     {func(f *FS) error { return f.Mkdir(Cred{}, "/etc/app/conf/x", 0o755) }, syscall.ENOTDIR},
		"directory in nothing":    {func(f *FS) error { return f.Mkdir(Cred{}, "/no/x", 0o755) }, syscall.ENOENT},
		"remove a full directory": {func(f *FS) error { return f.Remove(Cred{}, "/etc") }, syscall.ENOTEMPTY},
		"remove the root":         {func(f *FS) error { return f.Remove(Cred{}, "/") }, syscall.EBUSY},
		"remove everything":       {func(f *FS) error { return f.RemoveAll(Cred{}, "/etc") }, nil},
		"remove nothing":          {func(f *FS) error { return f.RemoveAll(Cred{}, "/nothing") }, nil},
		"directory into itself":   {func(f *FS) error { return f.Rename(Cred{}, "/etc", "/etc/app/etc") }, syscall.EINVAL},
		"file over a directory":   {func(f *FS) error { return f.Rename(Cred{}, "/tmp/of-2", "/etc") }, syscall.EISDIR},
		"create over a link": {func(f *FS) error {
			_, err := f.Open(Cred{}, "/home/link", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			return err
		}, syscall.EEXIST},
		"execute without any x": {func(f *FS) error { return f.Access(Cred{}, "/etc/app/conf", mayExec) }, syscall.EACCES},
		"write to what is only read": {func(f *FS) error {
			h, _ := f.Open(Cred{}, "/etc/app/conf", os.O_RDONLY, 0)
			_, err := h.Write([]byte("x"))
			return err
		}, syscall.EBADF},
		"above the root is the root": {func(f *FS) error { _, err := f.Stat(Cred{}, "/../../etc"); return err }, nil},
		"link out of the disk's root": {func(f *FS) error {
			return errors.Join(f.Symlink(Cred{}, "../../../../etc", "/tmp/up"), second(f.Stat(Cred{}, "/tmp/up/app")))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.do(newDisk(t)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// What one reader was given does not change when somebody writes in place.
func TestSharedContent(t *testing.T) {
	f := newDisk(t)
	content := []byte("before")
	if err := f.WriteFile(Cred{}, "/tmp/x", content, 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := f.Open(Cred{}, "/tmp/x", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt([]byte("X"), 0); err != nil {
		t.Fatal(err)
	}
	read, err := f.ReadFile(Cred{}, "/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.WriteAt([]byte("Y"), 1); err != nil {
		t.Fatal(err)
	}
	if string(content) != "before" || string(read) != "Xefore" {
		t.Errorf("got %q and %q", content, read)
	}
}

func TestFull(t *testing.T) {
	f := newDisk(t)
	f.SetSize(10)
	if err := f.WriteFile(Cred{}, "/tmp/x", make([]byte, 7), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v with 4 bytes there, 7 more and room for 10", err)
	}
	if err := f.WriteFile(Cred{}, "/tmp/x", make([]byte, 6), 0o644); err != nil {
		t.Errorf("got %v for exactly what is free", err)
	}
	if free, _ := f.Free(); free != 0 {
		t.Errorf("%d bytes free", free)
	}
	if err := f.Remove(Cred{}, "/tmp/x"); err != nil {
		t.Fatal(err)
	}
	if free, _ := f.Free(); free != 6 {
		t.Errorf("%d bytes free", free)
	}
	f.SetFull(true)
	if err := f.Mkdir(Cred{}, "/tmp/d", 0o755); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("mkdir on a full disk: %v", err)
	}
}
