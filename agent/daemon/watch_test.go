package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// scene is a host in a temporary directory, whose answer is what its allow-file and its holds say.
type scene struct {
	dir   string
	base  string
	w     Watcher
	lines chan gate.Status
}

func newScene(t *testing.T) *scene {
	t.Helper()
	base := t.TempDir()
	s := &scene{base: base, dir: filepath.Join(base, "kibo-agent"), lines: make(chan gate.Status, 100)}
	s.w = Watcher{Dir: s.dir, Holds: filepath.Join(s.dir, "holds"), Bus: filepath.Join(base, "no-bus"), Now: time.Now, Look: s.look}
	return s
}

func (s *scene) look(context.Context) gate.Status {
	out := gate.Status{Code: gate.CodeMissing, Reason: "it is " + time.Now().String()}
	if data, err := os.ReadFile(filepath.Join(s.dir, "allow.json")); err == nil {
		f, err := gate.Parse(data)
		v := gate.Decide(time.Now(), f, err, gate.Request{})
		out.Open, out.Code = v.Open, v.Code
		if f.NotAfter != 0 {
			out.Window = &f
		}
	}
	names, _ := os.ReadDir(s.w.Holds)
	for _, n := range names {
		out.Holds = append(out.Holds, gate.Hold{ID: n.Name()})
	}
	return out
}

// start runs the watcher until the test ends.
func (s *scene) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.w.Run(ctx, func(st gate.Status) error { s.lines <- st; return nil }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// line waits for the next line.
func (s *scene) line(t *testing.T, code string, holds int) gate.Status {
	t.Helper()
	select {
	case st := <-s.lines:
		if st.Code != code || len(st.Holds) != holds {
			t.Fatalf("%s with %d holds, want %s with %d", st.Code, len(st.Holds), code, holds)
		}
		return st
	case <-time.After(5 * time.Second):
		t.Fatalf("no line; want %s with %d holds", code, holds)
	}
	return gate.Status{}
}

func (s *scene) quiet(t *testing.T) {
	t.Helper()
	select {
	case st := <-s.lines:
		t.Fatalf("a line too many: %+v", st)
	case <-time.After(100 * time.Millisecond):
	}
}

func (s *scene) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func window(end time.Time) string {
	data, _ := json.Marshal(gate.AllowFile{NotAfter: end.Unix()})
	return string(data)
}

// proves Z3, Z4 and Z5: a window placed by anybody is seen at once, also where there was no directory, and its
// end comes by itself.
func TestWatchWindow(t *testing.T) {
	s := newScene(t)
	s.start(t)
	s.line(t, gate.CodeMissing, 0)
	end := time.Now().Add(1100 * time.Millisecond).Truncate(time.Second).Add(time.Second)
	s.put(t, "allow.json", window(end))
	s.line(t, gate.CodeOpen, 0)
	s.line(t, gate.CodeExpired, 0)
	if late := time.Since(end); late < 0 || late > time.Second {
		t.Errorf("the end was told %s late", late)
	}
	s.put(t, "allow.json", window(time.Now().Add(time.Hour)))
	s.line(t, gate.CodeOpen, 0)
	if err := os.Remove(filepath.Join(s.dir, "allow.json")); err != nil {
		t.Fatal(err)
	}
	s.line(t, gate.CodeMissing, 0)
	s.quiet(t)
}

func TestWatchHolds(t *testing.T) {
	s := newScene(t)
	s.put(t, "seen", "1")
	s.start(t)
	s.line(t, gate.CodeMissing, 0)
	s.put(t, "holds/a", "{}")
	s.line(t, gate.CodeMissing, 1)
	s.put(t, "holds/b", "{}")
	s.line(t, gate.CodeMissing, 2)
	if err := os.Remove(filepath.Join(s.dir, "holds/a")); err != nil {
		t.Fatal(err)
	}
	s.line(t, gate.CodeMissing, 1)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.line(t, gate.CodeMissing, 0)
	s.put(t, "holds/c", "{}") // everything made anew is watched again
	s.line(t, gate.CodeMissing, 1)
}

// What cannot change an answer is not even looked at.
func TestWatchIgnores(t *testing.T) {
	s := newScene(t)
	s.put(t, "seen", "1")
	var mu sync.Mutex
	looks := 0
	s.w.Look = func(ctx context.Context) gate.Status {
		mu.Lock()
		defer mu.Unlock()
		looks++
		return s.look(ctx)
	}
	s.start(t)
	s.line(t, gate.CodeMissing, 0)
	time.Sleep(200 * time.Millisecond) // the bus that is not there is noticed
	mu.Lock()
	before := looks
	mu.Unlock()
	for _, name := range []string{"lock", "start.lock", "seen", "current.json", ".allow.json123", "jobs/k/out"} {
		path := filepath.Join(s.dir, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.base, "neighbour"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	if looks != before {
		t.Errorf("%d looks more", looks-before)
	}
}

func TestWatchEndsWithItsReader(t *testing.T) {
	s := newScene(t)
	broken := errors.New("broken pipe")
	err := s.w.Run(t.Context(), func(gate.Status) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestHangup(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ctx, release := Hangup(t.Context(), int(w.Fd()))
	defer release()
	select {
	case <-ctx.Done():
		t.Fatal("ended while somebody reads")
	case <-time.After(50 * time.Millisecond):
	}
	_ = r.Close()
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("goes on though nobody reads")
	}
	quiet, release := Hangup(t.Context(), int(w.Fd()))
	release()
	if quiet.Err() == nil {
		t.Error("not ended by its release")
	}
}

// proves Z2: one second before, at and after every boundary.
func TestNext(t *testing.T) {
	file := func(from, to int64) *gate.AllowFile { return &gate.AllowFile{NotBefore: from, NotAfter: to} }
	bound := file(0, 500)
	bound.BootID, bound.BootUntil = "b", 130
	for name, tc := range map[string]struct {
		now  int64
		f    *gate.AllowFile
		want int64
	}{
		"no window":            {100, nil, 0},
		"before the end":       {499, file(0, 500), 500},
		"at the end":           {500, file(0, 500), 0},
		"after the end":        {501, file(0, 500), 0},
		"before the beginning": {99, file(100, 500), 100},
		"at the beginning":     {100, file(100, 500), 500},
		"by the boot's clock":  {100, bound, 110},
	} {
		var want time.Time
		if tc.want != 0 {
			want = time.Unix(tc.want, 0)
		}
		if got := next(time.Unix(tc.now, 0), 120*time.Second, gate.Status{Window: tc.f}); !got.Equal(want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00allow.json\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) >= 16; {
			before := len(rest)
			if _, rest = nextEvent(rest); len(rest) >= before {
				t.Fatal("does not get on")
			}
		}
	})
}
