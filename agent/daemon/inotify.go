package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// changes are the events of a directory's entries that can change an answer. Opening and reading cannot.
const changes = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// files tells of changes below the agent's directory, without ever looking by itself.
type files struct {
	dir   string // the agent's: its entries, those of its holds, and itself in the directory above
	holds string
	dpkg  string // of dpkg's list; "": not watched
	inbox *os.File
	names map[int32]string // watch → directory
}

func watchFiles(dir, holds, dpkg string) (*files, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", dir, err)
	}
	f := &files{dir: dir, holds: holds, dpkg: dpkg, inbox: os.NewFile(uintptr(fd), "inotify"), names: map[int32]string{}}
	if err := f.arm(); err != nil {
		_ = f.inbox.Close()
		return nil, err
	}
	return f, nil
}

// arm watches what there is to watch. It is called again when a directory has come or gone; to watch one that
// is watched already changes nothing.
func (f *files) arm() error {
	for _, dir := range []string{filepath.Dir(f.dir), f.dir, f.holds, f.dpkg} {
		if dir == "" {
			continue
		}
		wd, err := f.add(dir)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue // the directory above tells when it comes
		}
		if err != nil {
			return fmt.Errorf("cannot watch %s: %w", dir, err)
		}
		f.names[wd] = dir
	}
	return nil
}

func (f *files) add(dir string) (wd int32, err error) {
	raw, err := f.inbox.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("cannot use inotify: %w", err)
	}
	var n int
	var failed error
	if err := raw.Control(func(fd uintptr) { n, failed = unix.InotifyAddWatch(int(fd), dir, changes|unix.IN_ONLYDIR) }); err != nil {
		return 0, fmt.Errorf("cannot use inotify: %w", err)
	}
	return int32(n), failed
}

// run calls changed after every batch of events that matters, until ctx ends.
func (f *files) run(ctx context.Context, changed func()) error {
	stop := context.AfterFunc(ctx, func() { _ = f.inbox.Close() })
	defer stop()
	buf := make([]byte, 4096)
	for {
		n, err := f.inbox.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read inotify: %w", err)
		}
		matters := false
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			var e event
			e, rest = nextEvent(rest)
			matters = f.matters(e) || matters
		}
		if !matters {
			continue
		}
		if err := f.arm(); err != nil {
			return err
		}
		changed()
	}
}

// matters reports whether an event can change an answer. Locks, temporary files and the agent's own notes cannot.
func (f *files) matters(e event) bool {
	if e.mask&unix.IN_Q_OVERFLOW != 0 {
		return true
	}
	if e.mask&unix.IN_IGNORED != 0 {
		delete(f.names, e.wd)
		return true
	}
	switch dir := f.names[e.wd]; dir {
	case filepath.Dir(f.dir):
		return e.name == filepath.Base(f.dir)
	case f.dpkg:
		return e.name == "status" && e.mask&unix.IN_MOVED_TO != 0 // how dpkg replaces its list
	case f.dir:
		switch e.name {
		case "lock", "start.lock", "seen", "jobs", "versions", "current.json", "grant.json", "grant-allow.json", "reboot.json", "reboot-allow.json":
			return false
		}
	}
	return !strings.HasPrefix(e.name, ".")
}

// event is one inotify event.
type event struct {
	wd   int32
	mask uint32
	name string
}

// nextEvent reads one event of what the kernel gave; the buffer holds whole events only.
func nextEvent(b []byte) (event, []byte) {
	e := event{wd: int32(native(b[0:])), mask: native(b[4:])}
	end := min(unix.SizeofInotifyEvent+int(native(b[12:])), len(b))
	e.name = string(bytes.TrimRight(b[unix.SizeofInotifyEvent:end], "\x00"))
	return e, b[end:]
}
