//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy is returned by tryLock when another process holds the lock.
var errBusy = errors.New("another lab command is at work")

// tryLock takes an exclusive lock on a file that ends with the process. Close gives it back.
func tryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errBusy
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return file, nil
}

// waitLock takes the lock as soon as it is free.
func waitLock(ctx context.Context, path string) (*os.File, error) {
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, errBusy) {
			return lock, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
	}
}

// Own waits until no other process owns the lab in the directory, and keeps others waiting until Close or until
// this process ends. Up and Down do not ask for it: it is for test runs that must not share a lab.
func Own(ctx context.Context, dir string) (io.Closer, error) {
	spec, err := Spec{Dir: dir}.filled()
	if err != nil {
		return nil, err
	}
	return waitLock(ctx, filepath.Join(registryDir, labID(spec.Dir)+".owner"))
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
