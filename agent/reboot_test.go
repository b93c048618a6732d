package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// newReboots is a host with a known boot id.
func newReboots(t *testing.T) (Reboots, string) {
	t.Helper()
	j, _ := newJobs(t)
	root := t.TempDir()
	boot := filepath.Join(root, "proc/sys/kernel/random/boot_id")
	if err := os.MkdirAll(filepath.Dir(boot), 0o755); err != nil {
		t.Fatal(err)
	}
	reboot(t, boot, "11111111-1111-1111-1111-111111111111")
	j.Window.Identity = Identity{Root: root, Up: func() time.Duration { return time.Minute }}
	return Reboots{Jobs: j}, boot
}

func reboot(t *testing.T, file, id string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(id+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// denied is the code of a denial, "" of none.
func denied(t *testing.T, err error) string {
	t.Helper()
	var d *gate.Denial
	if err != nil && !errors.As(err, &d) {
		t.Fatal(err)
	}
	if d == nil {
		return ""
	}
	return d.Code
}

func permit(t *testing.T, r Reboots, id, want string) {
	t.Helper()
	if got := denied(t, r.Permit(t.Context(), id, "default")); got != want {
		t.Errorf("%s: %q, want %q", id, got, want)
	}
}

// proves Z3 and Z9: a single-use window permits one reboot of one client, however often that asks before it.
func TestPermitOnce(t *testing.T) {
	r, boot := newReboots(t)
	permit(t, r, "a", gate.CodeMissing)
	open(t, r.Jobs, gate.AllowFile{SingleUse: true, Operations: []string{gate.OpReboot}})
	permit(t, r, "a", "")
	if _, err := os.Lstat(r.Jobs.Window.Path); !os.IsNotExist(err) {
		t.Errorf("not consumed: %v", err)
	}
	permit(t, r, "a", "")
	permit(t, r, "b", gate.CodeMissing)
	later := r
	later.Jobs.Window.Now = func() time.Time { return now().Add(10 * time.Minute) }
	permit(t, later, "a", gate.CodeExpired)
	reboot(t, boot, "22222222-2222-2222-2222-222222222222")
	permit(t, r, "a", gate.CodeMissing)
	for _, id := range []string{"b", "a", "a"} {
		if err := r.Settled(t.Context(), id, "default"); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.Jobs.Dir, "reboot*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// proves Z3: several reboots in one window, by default.
func TestPermitOften(t *testing.T) {
	r, boot := newReboots(t)
	open(t, r.Jobs, gate.AllowFile{})
	permit(t, r, "a", "")
	reboot(t, boot, "22222222-2222-2222-2222-222222222222")
	permit(t, r, "a", "")
	open(t, r.Jobs, gate.AllowFile{Operations: []string{gate.OpInstall}})
	permit(t, r, "a", gate.CodeOtherOperation)
}

// proves Z7: not while somebody blocks shutdown; the window is not used up by the refusal.
func TestPermitInhibited(t *testing.T) {
	r, _ := newReboots(t)
	open(t, r.Jobs, gate.AllowFile{SingleUse: true})
	lock := gate.Inhibitor{What: "shutdown", Who: "backup", Mode: "block", UID: 1}
	held := r
	held.Jobs.Inhibitors = func(context.Context) ([]gate.Inhibitor, error) { return []gate.Inhibitor{lock}, nil }
	permit(t, held, "a", gate.CodeInhibited)
	lock.Mode = "delay"
	permit(t, held, "a", "")
	lock.Mode = "block"
	permit(t, held, "a", gate.CodeInhibited)
}
