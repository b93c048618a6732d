package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Renew moves the end of the lease with the id to so far from now, never beyond the lease's own hard end and
// never back. A lease that has run out stays out: meanwhile somebody may have relied on the closed gate. What it
// returns is the window and what the gate says; a refusal is a closed verdict, not an error.
func (w Window) Renew(ctx context.Context, id string, lasts time.Duration) (gate.AllowFile, gate.Verdict, error) {
	held, err := w.lock(ctx)
	if err != nil {
		return gate.AllowFile{}, gate.Verdict{}, err
	}
	defer held.release()
	now := w.Now()
	f, err := w.open(now, id)
	if err != nil {
		return f, gate.Closed(err), nil
	}
	end := min(now.Add(lasts).Unix(), f.RenewUntil)
	if end <= f.NotAfter {
		_, v := w.Judge(gate.Request{})
		return f, v, nil
	}
	f.NotAfter = end
	f = w.bootBound(f, now)
	data, err := encode(f)
	if err != nil {
		return f, gate.Verdict{}, err
	}
	if err := errors.Join(w.Seen.note(now), writeDurable(w.Path, data, 0o644)); err != nil {
		return f, gate.Verdict{}, err
	}
	_, v := w.Judge(gate.Request{})
	return f, v, nil
}

// open returns the lease with the id if it has not ended; holds do not end it.
func (w Window) open(now time.Time, id string) (gate.AllowFile, error) {
	if err := w.Seen.check(now); err != nil {
		return gate.AllowFile{}, err
	}
	f, err := w.read(w.Path)
	if err != nil {
		return f, err
	}
	if f.ID != id {
		return f, gate.Deny(gate.CodeOtherWindow, "the window that is there is %q, not %q", f.ID, id)
	}
	if f.RenewUntil == 0 {
		return f, gate.Deny(gate.CodeNoLease, "window %q is no lease: it ends at %s", id, gate.Clock(f.NotAfter))
	}
	here := w.Identity.Here(now)
	if v := here.Decide(f, nil, gate.Request{}); !v.Open && v.Code != gate.CodeNotYet {
		return f, &gate.Denial{Code: v.Code, Reason: v.Reason}
	}
	return f, nil
}

// bootBound ties the window's length to the present boot as well, where that is known.
func (w Window) bootBound(f gate.AllowFile, now time.Time) gate.AllowFile {
	f.BootID, f.BootUntil = "", 0
	if here := w.Identity.Here(now); here.BootID != "" {
		left := time.Unix(f.NotAfter, 0).Sub(now)
		f.BootID, f.BootUntil = here.BootID, int64((here.Up+left+time.Second-1)/time.Second)
	}
	return f
}

// encode writes the window as the file holds it.
func encode(f gate.AllowFile) ([]byte, error) {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode the window: %w", err)
	}
	return append(data, '\n'), nil
}
