package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// clock is a host's clocks, which a test turns.
type clock struct {
	wall time.Time
	up   time.Duration
	boot string
}

// pass lets time go by on both clocks.
func (c *clock) pass(d time.Duration) { c.wall, c.up = c.wall.Add(d), c.up+d }

// on gives the window a host with these clocks.
func (c *clock) on(t *testing.T, w Window) Window {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/machine-id"), "0123456789abcdef0123456789abcdef\n", 0o644)
	w.Now = func() time.Time { return c.wall }
	w.Identity = Identity{Root: root, Up: func() time.Duration {
		write(t, filepath.Join(root, "proc/sys/kernel/random/boot_id"), c.boot+"\n", 0o644)
		return c.up
	}}
	w.Seen = Seen{Path: filepath.Join(filepath.Dir(w.Path), "seen")}
	return w
}

func newClock() *clock {
	return &clock{wall: now(), up: 1000 * time.Second, boot: "01234567-89ab-cdef-0123-456789abcdef"}
}

// proves Z4: a lease that nobody renews ends by itself; renewed, it goes on up to its hard end and no further;
// once it has run out it stays out.
func TestLease(t *testing.T) {
	c := newClock()
	w := c.on(t, newWindow(t))
	lease := gate.AllowFile{ID: "l", NotAfter: now().Unix() + 180, RenewUntil: now().Unix() + 400}
	if v, err := w.Place(t.Context(), lease); err != nil || !v.Open {
		t.Fatalf("%+v %v", v, err)
	}
	for i, step := range []struct {
		wait time.Duration
		id   string
		code string
		end  int64 // seconds after the beginning
	}{
		{0, "l", gate.CodeOpen, 180},
		{0, "l", gate.CodeOpen, 180}, // idempotent
		{60 * time.Second, "other", gate.CodeOtherWindow, 180},
		{0, "l", gate.CodeOpen, 240},
		{179 * time.Second, "l", gate.CodeOpen, 400}, // a second before the end: up to the hard end
		{160 * time.Second, "l", gate.CodeOpen, 400},
		{1 * time.Second, "l", gate.CodeExpired, 400}, // at the hard end
		{60 * time.Second, "l", gate.CodeExpired, 400},
	} {
		c.pass(step.wait)
		f, v, err := w.Renew(t.Context(), step.id, 180*time.Second)
		if err != nil || v.Code != step.code || f.NotAfter != now().Unix()+step.end {
			t.Errorf("%d: %+v until +%d %v, want %s until +%d", i, v, f.NotAfter-now().Unix(), err, step.code, step.end)
		}
	}
}

func TestRenewRefuses(t *testing.T) {
	c := newClock()
	w := c.on(t, newWindow(t))
	if _, v, err := w.Renew(t.Context(), "l", time.Minute); err != nil || v.Code != gate.CodeMissing {
		t.Errorf("no window: %+v %v", v, err)
	}
	if _, err := w.Place(t.Context(), gate.AllowFile{ID: "l", NotAfter: now().Unix() + 60}); err != nil {
		t.Fatal(err)
	}
	if _, v, err := w.Renew(t.Context(), "l", time.Hour); err != nil || v.Code != gate.CodeNoLease {
		t.Errorf("no lease: %+v %v", v, err)
	}
	if err := os.WriteFile(w.Path, []byte("{"), 0o644); err != nil { //nolint:gosec // G306: as an allow-file must be
		t.Fatal(err)
	}
	if _, v, err := w.Renew(t.Context(), "l", time.Hour); err != nil || v.Code != gate.CodeNotJSON {
		t.Errorf("unreadable: %+v %v", v, err)
	}
}

// proves Z4: a clock stepped back within a boot does not prolong a window by a second, whatever the mark says.
func TestClockBackInBoot(t *testing.T) {
	c := newClock()
	w := c.on(t, newWindow(t))
	w.Seen = Seen{} // not by the mark
	if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600}); err != nil {
		t.Fatal(err)
	}
	judge := func() string {
		_, v := w.Judge(gate.Request{})
		return v.Code
	}
	c.pass(300 * time.Second)
	c.wall = c.wall.Add(-time.Hour)
	for i, step := range []struct {
		wait time.Duration
		code string
	}{{0, gate.CodeOpen}, {299 * time.Second, gate.CodeOpen}, {time.Second, gate.CodeExpired}, {time.Second, gate.CodeExpired}} {
		if c.pass(step.wait); judge() != step.code {
			t.Errorf("%d: %s, want %s", i, judge(), step.code)
		}
	}
}

// proves Z3, Z4: a reboot inside a window leaves it open until notAfter; one that comes up with a clock of
// yesterday does not.
func TestReboot(t *testing.T) {
	c := newClock()
	w := c.on(t, newWindow(t))
	if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600}); err != nil {
		t.Fatal(err)
	}
	judge := func() string {
		_, v := w.Judge(gate.Request{})
		return v.Code
	}
	c.pass(300 * time.Second)
	c.up, c.boot = 5*time.Second, "76543210-89ab-cdef-0123-456789abcdef"
	if got := judge(); got != gate.CodeOpen {
		t.Errorf("after a reboot: %s", got)
	}
	c.wall = c.wall.Add(-24 * time.Hour)
	if got := judge(); got != gate.CodeClockBack {
		t.Errorf("with a clock of yesterday: %s", got)
	}
	c.wall = now().Add(599 * time.Second)
	if got := judge(); got != gate.CodeOpen {
		t.Errorf("a second before the end: %s", got)
	}
	c.wall = now().Add(600 * time.Second)
	if got := judge(); got != gate.CodeExpired {
		t.Errorf("at the end: %s", got)
	}
}

// proves Z4: a clock that no time service has set since boot may not be behind the mark at all.
func TestSeenNotSynchronised(t *testing.T) {
	synced := false
	s := Seen{Path: filepath.Join(t.TempDir(), "seen"), Synced: func() bool { return synced }}
	if err := s.note(now()); err != nil {
		t.Fatal(err)
	}
	for at, code := range map[time.Duration]string{time.Second: "", 0: "", -time.Second: gate.CodeClockBack} {
		if got := refusal(s.check(now().Add(at))); got != code {
			t.Errorf("not synchronised, %s: %q, want %q", at, got, code)
		}
	}
	synced = true
	for at, code := range map[time.Duration]string{-time.Second: "", -clockSlack: "", -clockSlack - time.Second: gate.CodeClockBack} {
		if got := refusal(s.check(now().Add(at))); got != code {
			t.Errorf("synchronised, %s: %q, want %q", at, got, code)
		}
	}
}

func TestIdentity(t *testing.T) {
	if h := (Identity{}).Here(now()); h.BootID+h.MachineID != "" || h.Up != 0 || !h.Now.Equal(now()) {
		t.Errorf("%+v", h)
	}
	if h := (Identity{Root: t.TempDir(), Up: Uptime}).Here(now()); h.BootID+h.MachineID != "" {
		t.Errorf("%+v", h)
	}
	if h := (Identity{Root: "/", Up: Uptime}).Here(now()); h.Up <= 0 || len(h.BootID) != 36 {
		t.Errorf("this machine: %+v", h)
	}
}
