package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a taken lock is tried again by who can be cancelled.
const lockPoll = 10 * time.Millisecond

// errLocked: somebody else holds the lock.
var errLocked = errors.New("is locked by another process")

// lock is a held flock; it ends with the process at the latest.
type lock struct{ file *os.File }

// tryLock takes the lock at path or fails with errLocked. how is unix.LOCK_EX or unix.LOCK_SH.
func tryLock(path string, how int) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock %s: %w", path, err)
	}
	for {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil {
		return &lock{file: f}, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s %w", path, errLocked)
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}

// takeLock waits for the lock at path as long as ctx permits.
func takeLock(ctx context.Context, path string, how int) (*lock, error) {
	for {
		l, err := tryLock(path, how)
		if err == nil || !errors.Is(err, errLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot lock %s: %w", path, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// release gives the lock back.
func (l *lock) release() { _ = l.file.Close() }
