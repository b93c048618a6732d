package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Sweep removes the allow-file if its time is over, and says so; "" if it is not. Only the end counts here: a
// file that opens nothing for another reason is left for people to see. Others may replace the file at any
// moment without taking our lock, so it is moved aside first and judged there.
func (w Window) Sweep(ctx context.Context) (string, error) {
	if !w.over(w.Path) {
		return "", nil
	}
	held, err := w.lock(ctx)
	if err != nil {
		return "", err
	}
	defer held.release()
	dir := filepath.Dir(w.Path)
	aside := filepath.Join(dir, ".over.json")
	if err := os.Rename(w.Path, aside); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
		return "", fmt.Errorf("cannot remove the window that is over: %w", err)
	}
	f, err := w.read(aside)
	if err != nil || !over(f, w.Now()) {
		// A newer one came in between: put it back, unless there is a still newer one.
		err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, w.Path, unix.RENAME_NOREPLACE)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return "", fmt.Errorf("cannot put back a window that is not over: %w", err)
		}
		_ = os.Remove(aside) // gone if it was put back
		return "", syncDir(dir)
	}
	if err := os.Remove(aside); err != nil {
		return "", fmt.Errorf("cannot remove the window that is over: %w", err)
	}
	return "removed the window that ended at " + gate.Clock(f.NotAfter), syncDir(dir)
}

func (w Window) over(path string) bool {
	f, err := w.read(path)
	return err == nil && over(f, w.Now())
}

func over(f gate.AllowFile, now time.Time) bool { return f.NotAfter > 0 && now.Unix() >= f.NotAfter }
