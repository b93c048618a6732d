package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func newWindow(t *testing.T) Window {
	t.Helper()
	base, trust := place(t)
	return Window{Trust: trust, Path: filepath.Join(base, "kibo-agent", "allow.json"), Now: now}
}

// proves Z6: what the command places is what the gate opens for, and closing it again is idempotent.
func TestPlaceAndClose(t *testing.T) {
	w := newWindow(t)
	if did, err := w.Close(t.Context(), ""); err != nil || did != "there was no window" {
		t.Errorf("closing nothing: %q %v", did, err)
	}
	v, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 60, ID: "a"})
	if err != nil || !v.Open {
		t.Fatalf("got %+v %v", v, err)
	}
	if st, err := os.Stat(w.Path); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	if did, err := w.Close(t.Context(), "b"); err != nil || !strings.Contains(did, "another window") {
		t.Errorf("closing another id: %q %v", did, err)
	}
	if _, v := w.Judge(gate.Request{}); !v.Open {
		t.Errorf("another window was closed: %+v", v)
	}
	for _, want := range []string{"closed", "there was no window"} {
		if did, err := w.Close(t.Context(), ""); err != nil || did != want {
			t.Errorf("got %q %v, want %q", did, err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// proves Z4: a window that ends at once, or too far ahead, is not placed.
func TestPlaceRefuses(t *testing.T) {
	w := newWindow(t)
	for name, f := range map[string]gate.AllowFile{
		"ended":        {NotAfter: now().Unix()},
		"too far":      {NotAfter: now().Add(gate.MaxWindow).Unix() + 1},
		"milliseconds": {NotAfter: now().UnixMilli()},
		"bad text":     {NotAfter: now().Unix() + 60, Reason: "\x1b[2J"},
	} {
		if _, err := w.Place(t.Context(), f); err == nil {
			t.Errorf("%s: placed", name)
		}
	}
	if _, err := os.Lstat(w.Path); err == nil {
		t.Error("there is a file")
	}
}

// proves Z4: a clock that is set back does not open a window again that was seen to be over.
func TestClockSetBack(t *testing.T) {
	w := newWindow(t)
	w.Seen = Seen{Path: filepath.Join(filepath.Dir(w.Path), "seen")}
	if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 600}); err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) string {
		w.Now = func() time.Time { return now().Add(d) }
		_, v := w.Judge(gate.Request{})
		return v.Code
	}
	for _, step := range []struct {
		at   time.Duration
		code string
	}{
		{599 * time.Second, gate.CodeOpen},
		{-clockSlack, gate.CodeOpen}, // a small step, as time daemons make
		{-clockSlack - time.Second, gate.CodeClockBack},
		{600 * time.Second, gate.CodeExpired},
		{300 * time.Second, gate.CodeClockBack},
		{-24 * time.Hour, gate.CodeClockBack},
		{700 * time.Second, gate.CodeExpired},
	} {
		if got := at(step.at); got != step.code {
			t.Errorf("at %s: %s, want %s", step.at, got, step.code)
		}
	}
	write(t, w.Seen.Path, "rubbish", 0o644)
	if got := at(0); got == gate.CodeOpen {
		t.Error("open with an unreadable mark")
	}
}

// proves Z2: a window that opens nothing when it is placed is taken back, so that it does not open later by itself.
func TestPlaceTakesBack(t *testing.T) {
	w := newWindow(t)
	dir := filepath.Dir(w.Path)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o775); err != nil { //nolint:gosec // G302: the defect under test
		t.Fatal(err)
	}
	if v, err := w.Place(t.Context(), gate.AllowFile{NotAfter: now().Unix() + 60}); err != nil || v.Code != gate.CodeDirWritable {
		t.Fatalf("got %+v %v", v, err)
	}
	if _, err := os.Lstat(w.Path); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}
