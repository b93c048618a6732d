package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Holds are the people on this host who say no, one file each in a directory of root's.
type Holds struct {
	Dir   string // normally gate.HoldsPath; empty: none are kept
	Trust Trust
}

// List returns the holds by their names. What is there and cannot be read or trusted holds as well: an error
// near the gate is a no.
func (h Holds) List() []gate.Hold {
	if h.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(h.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []gate.Hold{{ID: "unknown", Who: "unknown", Why: fmt.Sprintf("cannot read the holds: %v", err)}}
	}
	var all []gate.Hold
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") { // a file in the making
			all = append(all, h.read(e.Name()))
		}
	}
	return all
}

func (h Holds) read(id string) gate.Hold {
	path := filepath.Join(h.Dir, id)
	data, err := h.Trust.Read(path)
	var hold gate.Hold
	if err == nil {
		hold, err = gate.ParseHold(id, data)
	}
	if err == nil {
		return hold
	}
	bad := gate.Hold{ID: printable(id), Who: "somebody", Why: printable(fmt.Sprintf("no reason can be read: %v", err))}
	if st, statErr := os.Lstat(path); statErr == nil {
		bad.Since = st.ModTime().UTC().Truncate(time.Second)
	}
	return bad
}

// Hold places a hold. The same id again is the same hold: it keeps since when it is there. Without an id it gets
// one of its own, so that two people do not release each other's.
func (w Window) Hold(ctx context.Context, hold gate.Hold) (gate.Hold, error) {
	held, err := w.lock(ctx) // a job is started before or sees it, nothing in between
	if err != nil {
		return hold, err
	}
	defer held.release()
	if err := os.MkdirAll(w.Holds.Dir, 0o755); err != nil {
		return hold, fmt.Errorf("cannot make %s: %w", w.Holds.Dir, err)
	}
	there := w.Holds.List()
	hold.Since = w.Now().UTC().Truncate(time.Second)
	if hold.ID == "" {
		hold.ID = freeID(there, hold.Since)
	}
	if err := gate.CheckHoldID(hold.ID); err != nil {
		return hold, err
	}
	for _, h := range there {
		if h.ID == hold.ID && !h.Since.IsZero() {
			hold.Since = h.Since
		}
	}
	data, err := hold.Text()
	if err != nil {
		return hold, err
	}
	if _, err := gate.ParseHold(hold.ID, data); err != nil {
		return hold, fmt.Errorf("cannot place this hold: %w", err)
	}
	return hold, errors.Join(writeDurable(filepath.Join(w.Holds.Dir, hold.ID), data, 0o644), syncDir(filepath.Dir(w.Holds.Dir)))
}

func freeID(there []gate.Hold, since time.Time) string {
	id := since.Format("20060102-150405")
	for n := 2; slices.ContainsFunc(there, func(h gate.Hold) bool { return h.ID == id }); n++ {
		id = fmt.Sprintf("%s-%d", since.Format("20060102-150405"), n)
	}
	return id
}

// Release takes holds away, and reports which. With an id only that one; without, the only one there is; with
// all, every one. None to release is no error.
func (w Window) Release(ctx context.Context, id string, all bool) ([]gate.Hold, error) {
	if _, err := os.Lstat(w.Holds.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	held, err := w.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer held.release()
	names, err := os.ReadDir(w.Holds.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the holds: %w", err)
	}
	names = slices.DeleteFunc(names, func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), ".") || id != "" && e.Name() != id
	})
	if id == "" && !all && len(names) > 1 {
		var ids []string
		for _, e := range names {
			ids = append(ids, printable(e.Name()))
		}
		return nil, fmt.Errorf("cannot tell which hold to release: there are %s; name one with --id, or --all", strings.Join(ids, ", "))
	}
	var gone []gate.Hold
	for _, e := range names {
		hold := w.Holds.read(e.Name())
		if err := os.Remove(filepath.Join(w.Holds.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, fmt.Errorf("cannot release hold %s: %w", printable(e.Name()), err)
		}
		gone = append(gone, hold)
	}
	return gone, syncDir(w.Holds.Dir)
}
