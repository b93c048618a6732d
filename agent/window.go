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

// Window is the allow-file on this host: reading, placing and taking it away.
type Window struct {
	Trust Trust
	Path  string // normally gate.DefaultPath
	Now   func() time.Time
	Seen  Seen // the clock's high-water mark; zero: not kept
	// Identity is this host's; zero: unknown. Holds are the people who say no; zero: none are kept.
	Identity Identity
	Holds    Holds
}

// Judge reads the allow-file afresh and decides on the request. The file is returned also when the gate is
// closed, as far as it could be read. No daemon is asked (Z5).
func (w Window) Judge(req gate.Request) (gate.AllowFile, gate.Verdict) {
	now := w.Now()
	f, v := w.judge(w.Path, now, req)
	if v.Code == gate.CodeExpired {
		// Once seen to be over, it stays over, even if the clock is set back. Only root can write that down,
		// and the answer is the same without it.
		_ = w.Seen.note(now)
	}
	return f, v
}

func (w Window) judge(path string, now time.Time, req gate.Request) (gate.AllowFile, gate.Verdict) {
	if err := w.Seen.check(now); err != nil {
		return gate.AllowFile{}, gate.Closed(err)
	}
	f, err := w.read(path)
	here := w.Identity.Here(now)
	here.Holds = w.Holds.List()
	return f, here.Decide(f, err, req)
}

// covers judges a window that was taken for an operation, at the moment that was permitted: an operation that
// has begun is interrupted neither by the end of its window nor by a hold.
func (w Window) covers(f gate.AllowFile, permitted time.Time, req gate.Request) gate.Verdict {
	f.BootID, f.BootUntil = "", 0
	return w.Identity.Here(permitted).Decide(f, nil, req)
}

func (w Window) read(path string) (gate.AllowFile, error) {
	data, err := w.Trust.Read(path)
	if err != nil {
		return gate.AllowFile{}, err
	}
	f, err := gate.Parse(data)
	if err != nil {
		return gate.AllowFile{}, fmt.Errorf("cannot use %s: %w", path, err)
	}
	return f, nil
}

// Place writes the allow-file, replacing any other, and then judges it as everybody will: what it returns is
// what the gate now says (Z6), which is still closed while somebody holds the host.
func (w Window) Place(ctx context.Context, f gate.AllowFile) (gate.Verdict, error) {
	now := w.Now()
	f = w.bootBound(f, now)
	data, err := encode(f)
	if err != nil {
		return gate.Verdict{}, err
	}
	parsed, err := gate.Parse(data)
	if v := w.Identity.Here(now).Decide(parsed, err, gate.Request{}); !v.Open && v.Code != gate.CodeNotYet {
		return v, fmt.Errorf("cannot place this window: %s", v.Reason)
	}
	held, err := w.lock(ctx)
	if err != nil {
		return gate.Verdict{}, err
	}
	defer held.release()
	if err := w.Seen.note(now); err != nil {
		return gate.Verdict{}, err
	}
	if err := writeDurable(w.Path, data, 0o644); err != nil {
		return gate.Verdict{}, err
	}
	_, v := w.Judge(gate.Request{})
	if !v.Open && v.Code != gate.CodeNotYet && v.Code != gate.CodeHeld {
		// What opens nothing now must not begin to when its defect goes away: the caller is told that it failed.
		if err := os.Remove(w.Path); err != nil {
			return v, fmt.Errorf("cannot take back a window that opens nothing (%s): %w", v.Reason, err)
		}
	}
	return v, nil
}

// Close takes the allow-file away, whatever is in it. With an id, another window's file is left alone, and
// so is one that cannot be read: it is closed as it is. It returns what was done in words.
func (w Window) Close(ctx context.Context, id string) (string, error) {
	if _, err := os.Lstat(filepath.Dir(w.Path)); errors.Is(err, os.ErrNotExist) {
		return "there was no window", nil
	}
	held, err := w.lock(ctx)
	if err != nil {
		return "", err
	}
	defer held.release()
	if id != "" {
		f, err := w.read(w.Path)
		if err != nil {
			v := gate.Closed(err)
			if v.Code == gate.CodeMissing {
				return "there was no window", nil
			}
			return "left alone what is there, since it opens nothing: " + v.Reason, nil
		}
		if f.ID != id {
			return fmt.Sprintf("left another window alone (id %q)", f.ID), nil
		}
	}
	err = os.Remove(w.Path)
	if errors.Is(err, os.ErrNotExist) {
		return "there was no window", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot close the window: %w", err)
	}
	return "closed", syncDir(filepath.Dir(w.Path))
}

// take moves a single-use window to where its one operation keeps it, by one rename, so that of any number
// of takers one gets it (Z3). What was moved is judged again: it may be newer than what was judged before.
func (w Window) take(to string, now time.Time, req gate.Request) gate.Verdict {
	err := os.Rename(w.Path, to)
	if errors.Is(err, os.ErrNotExist) {
		return gate.Closed(gate.Deny(gate.CodeUsed, "the single-use window was taken by another operation"))
	}
	if err != nil {
		return gate.Closed(fmt.Errorf("cannot take the single-use window: %w", err))
	}
	if err := errors.Join(syncDir(filepath.Dir(w.Path)), syncDir(filepath.Dir(to))); err != nil {
		return gate.Closed(err)
	}
	_, v := w.judge(to, now, req)
	if !v.Open {
		// Not ours to use: put it back, unless there is a newer one already.
		_ = unix.Renameat2(unix.AT_FDCWD, to, unix.AT_FDCWD, w.Path, unix.RENAME_NOREPLACE)
	}
	return v
}

// lock keeps placing, closing and taking from happening at the same time.
func (w Window) lock(ctx context.Context) (*lock, error) {
	dir := filepath.Dir(w.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", dir, err)
	}
	return takeLock(ctx, filepath.Join(dir, "start.lock"), unix.LOCK_EX)
}
