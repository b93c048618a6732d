package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// holding is a window on a host that keeps holds.
func holding(t *testing.T) Window {
	t.Helper()
	w := newWindow(t)
	w.Holds = Holds{Dir: filepath.Join(filepath.Dir(w.Path), "holds"), Trust: w.Trust}
	return w
}

// proves Z7: a hold closes an open window at once for everybody, keeps since when it is there, and goes when it
// is released.
func TestHoldAndRelease(t *testing.T) {
	w := holding(t)
	if gone, err := w.Release(t.Context(), "", false); err != nil || len(gone) != 0 {
		t.Errorf("released nothing: %v %v", gone, err)
	}
	if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600}); err != nil {
		t.Fatal(err)
	}
	h, err := w.Hold(t.Context(), gate.Hold{ID: "disk", Who: "ann", Why: "disk swap"})
	if err != nil || !h.Since.Equal(now()) {
		t.Fatalf("%+v %v", h, err)
	}
	later := w
	later.Now = func() time.Time { return now().Add(time.Minute) }
	if h, err = later.Hold(t.Context(), gate.Hold{ID: "disk", Who: "ann", Why: "still"}); err != nil || !h.Since.Equal(now()) || h.Why != "still" {
		t.Errorf("held again: %+v %v", h, err)
	}
	for op, code := range map[string]string{gate.OpStop: gate.CodeHeld, gate.OpInstall: gate.CodeHeld, "": gate.CodeHeld, gate.OpStart: gate.CodeOpen} {
		if _, v := w.Judge(gate.Request{Operation: op}); v.Code != code {
			t.Errorf("%q: %+v, want %s", op, v, code)
		}
	}
	// A held host still gets its window: what is stopped can be started again.
	if v, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600, ID: "w"}); err != nil || v.Code != gate.CodeHeld {
		t.Errorf("placing while held: %+v %v", v, err)
	}
	if gone, err := w.Release(t.Context(), "other", false); err != nil || len(gone) != 0 {
		t.Errorf("released another: %v %v", gone, err)
	}
	if gone, err := w.Release(t.Context(), "", false); err != nil || len(gone) != 1 || gone[0].Who != "ann" {
		t.Errorf("released: %v %v", gone, err)
	}
	if _, v := w.Judge(gate.Request{Operation: gate.OpStop}); !v.Open {
		t.Errorf("still %+v", v)
	}
}

// Two people do not release each other's holds by accident.
func TestHoldsOfTwoPeople(t *testing.T) {
	w := holding(t)
	for _, who := range []string{"ann", "ben", "eve"} {
		if _, err := w.Hold(t.Context(), gate.Hold{Who: who, Why: "demo"}); err != nil {
			t.Fatal(err)
		}
	}
	ids := ""
	for _, h := range w.Holds.List() {
		ids += h.ID + " "
	}
	if ids != "20270115-080000 20270115-080000-2 20270115-080000-3 " {
		t.Errorf("ids %s", ids)
	}
	if _, err := w.Release(t.Context(), "", false); err == nil || !strings.Contains(err.Error(), "20270115-080000-2") {
		t.Errorf("released one of several: %v", err)
	}
	if gone, err := w.Release(t.Context(), "20270115-080000-2", false); err != nil || len(gone) != 1 || gone[0].Who != "ben" {
		t.Errorf("%v %v", gone, err)
	}
	if gone, err := w.Release(t.Context(), "", true); err != nil || len(gone) != 2 || len(w.Holds.List()) != 0 {
		t.Errorf("%v %v", gone, err)
	}
}

// proves Z5: a hold that cannot be read or trusted holds all the same, and can be released.
func TestHoldFailsClosed(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"empty":        func(p string) error { return os.WriteFile(p, nil, 0o644) },
		"not JSON":     func(p string) error { return os.WriteFile(p, []byte("hands off"), 0o644) },
		"mode":         func(p string) error { return os.WriteFile(p, []byte(`{"who":"a","why":"b"}`), 0o600) },
		"a directory":  func(p string) error { return os.Mkdir(p, 0o755) },
		"a link":       func(p string) error { return os.Symlink("/nowhere", p) },
		"its name":     func(p string) error { return os.WriteFile(filepath.Join(filepath.Dir(p), "a b\x1b"), nil, 0o644) },
		"its place":    func(p string) error { return os.Chmod(filepath.Dir(p), 0o775) },
		"no directory": func(p string) error { _ = os.Remove(p); return os.Remove(filepath.Dir(p)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := holding(t)
			if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600}); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(w.Holds.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(w.Holds.Dir, "h")
			if name == "its place" {
				write(t, path, `{"who":"a","why":"b"}`, 0o644)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if name == "no directory" {
				write(t, w.Holds.Dir, "a file", 0o644)
			}
			_, v := w.Judge(gate.Request{Operation: gate.OpStop})
			if v.Open || v.Code != gate.CodeHeld || strings.Contains(v.Reason, "\x1b") {
				t.Errorf("%+v", v)
			}
			if name == "no directory" {
				return
			}
			if gone, err := w.Release(t.Context(), "", true); err != nil || len(gone) != 1 {
				t.Errorf("%v %v", gone, err)
			}
		})
	}
	w := holding(t)
	write(t, filepath.Join(w.Holds.Dir, ".h123"), "half", 0o600)
	if l := w.Holds.List(); len(l) != 0 {
		t.Errorf("a file in the making holds: %v", l)
	}
}

// proves Z1: a hold that comes while a job runs does not stop its own package manager.
func TestHoldDoesNotBreakAJob(t *testing.T) {
	j, _ := newJobs(t)
	j.Window.Holds = Holds{Dir: filepath.Join(j.Dir, "holds"), Trust: j.Window.Trust}
	open(t, j, gate.AllowFile{})
	o := order("k", "true")
	o.Request = gate.Request{Operation: gate.OpInstall, Packages: map[string]string{"kibotos-node": "2"}}
	if job := mustRun(t, j, o); job.State != gate.JobFinished {
		t.Fatalf("%+v", job)
	}
	_ = os.Remove(j.dir("k").exit()) // as if it still ran
	if _, err := j.Window.Hold(t.Context(), gate.Hold{Who: "ann", Why: "stop"}); err != nil {
		t.Fatal(err)
	}
	if err := guard(t, j, "0::/system.slice/kibo-job-k.service\n").Permit(install("kibotos-node", "2", "/n.deb")); err != nil {
		t.Errorf("inside the job: %v", err)
	}
	if err := guard(t, j, "0::/init.scope\n").Permit(install("kibotos-node", "2", "/n.deb")); refusal(err) != gate.CodeHeld {
		t.Errorf("outside: %v", err)
	}
	if job := mustRun(t, j, order("k2", "true")); job.State != gate.JobDenied || job.Code != gate.CodeHeld {
		t.Errorf("%+v", job)
	}
}
