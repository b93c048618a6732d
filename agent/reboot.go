package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Reboots lets another program on this host reboot it, as Zincati does (Z9): the same gate as for a job, but the
// reboot itself is not ours to start.
type Reboots struct{ Jobs Jobs }

// rebootGrant is a single-use window that was taken for a reboot: asked again before the reboot, the same client
// gets the same answer; after it, the window is used up.
type rebootGrant struct {
	ID        string    `json:"id"`
	Group     string    `json:"group"`
	BootID    string    `json:"bootId"`
	Permitted time.Time `json:"permitted"`
}

func (r Reboots) grantFile() string  { return filepath.Join(r.Jobs.Dir, "reboot.json") }
func (r Reboots) grantAllow() string { return filepath.Join(r.Jobs.Dir, "reboot-allow.json") }

// Permit asks the gate for a reboot, and takes a single-use window before it answers (Z3). A denial is a
// *gate.Denial.
func (r Reboots) Permit(ctx context.Context, id, group string) error {
	w := r.Jobs.Window
	held, err := w.lock(ctx)
	if err != nil {
		return err
	}
	defer held.release()
	busy, err := r.Jobs.busy()
	if err != nil {
		return err
	}
	if busy != "" {
		return gate.Deny(gate.CodeHeld, "%s", busy)
	}
	now := w.Now()
	req := gate.Request{Operation: gate.OpReboot}
	me := rebootGrant{ID: id, Group: group, BootID: w.Identity.Here(now).BootID, Permitted: now.UTC()}
	path, again := w.Path, r.granted(me)
	if again {
		path = r.grantAllow()
	}
	f, v := w.judge(path, now, req)
	if v.Open {
		v = r.Jobs.inhibited(ctx, req.Operation, v)
	}
	if v.Open && f.SingleUse && !again {
		if v = w.take(r.grantAllow(), now, req); v.Open {
			if err := writeJSON(r.grantFile(), me, 0o600); err != nil {
				return err
			}
		}
	}
	if !v.Open {
		return &gate.Denial{Code: v.Code, Reason: v.Reason}
	}
	return nil
}

// granted reports whether the same client took the window before, in this boot. A boot that is not known is
// never the same.
func (r Reboots) granted(me rebootGrant) bool {
	var had rebootGrant
	return readJSON(r.grantFile(), &had) == nil && me.BootID != "" &&
		had.ID == me.ID && had.Group == me.Group && had.BootID == me.BootID
}

// Settled forgets what the client was permitted: it has rebooted, or does not want to any more.
func (r Reboots) Settled(ctx context.Context, id, group string) error {
	if _, err := os.Lstat(r.grantFile()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := r.Jobs.Window.lock(ctx)
	if err != nil {
		return err
	}
	defer held.release()
	var had rebootGrant
	if err := readJSON(r.grantFile(), &had); err != nil {
		return err
	}
	if had.ID != id || had.Group != group {
		return nil
	}
	for _, path := range []string{r.grantFile(), r.grantAllow()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot forget the reboot: %w", err)
		}
	}
	return syncDir(r.Jobs.Dir)
}
