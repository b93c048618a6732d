package remotetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// witness is a test that is looked at instead of failing.
type witness struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (w *witness) Helper()          {}
func (w *witness) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }
func (w *witness) Errorf(format string, args ...any) {
	w.errors = append(w.errors, fmt.Sprintf(format, args...))
}

// proves that the fake is strict: commands without a stub and stubs without a command fail the test
func TestFakeIsStrict(t *testing.T) {
	w := &witness{TB: t}
	f := NewFake(w, "node-a", OK("used", "out"), OK("unused", ""), Stub{Line: "twice", Times: 2}, Stub{Line: "any", Times: -1})
	for _, line := range []string{"used", "used", "twice", "any", "any", "any", "unknown"} {
		if _, err := f.Run(t.Context(), reads(line)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.errors) != 2 {
		t.Errorf("got %q, want the second use and the unknown command", w.errors)
	}
	w.errors = nil
	for _, cleanup := range w.cleanups {
		cleanup()
	}
	if len(w.errors) != 2 {
		t.Errorf("got %q, want the unused stub and the one used once of twice", w.errors)
	}
}

// proves that the fake fails, holds and keeps files as a host does
func TestFakeBehaves(t *testing.T) {
	lost := &remote.Error{Host: "node-a", Kind: remote.Lost, Err: errors.New("gone")}
	f := NewFake(t, "node-a", OK("flock", "held\nmore"), Fails("flock", 7, "taken"), Stub{Line: "cut", Err: lost},
		Fails("false", 1, ""))
	h, err := f.Hold(t.Context(), reads("flock"))
	if err != nil || h.First != "held" || h.Release() != nil || h.Release() != nil {
		t.Errorf("hold: %+v, %v", h, err)
	}
	conformHoldFailsWith(t, f, reads("flock"))
	if _, err := f.Run(t.Context(), reads("cut")); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	b := command.Batch{StopOnFailure: true, Commands: []command.Command{reads("false"), reads("never")}}
	if got, err := f.RunBatch(t.Context(), b); err != nil || len(got) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := f.Upload(t.Context(), upload([]byte("data"), "/stage/f")); err != nil {
		t.Error(err)
	}
	if data, ok := f.File("/stage/f"); !ok || string(data) != "data" {
		t.Errorf("file %q, %v", data, ok)
	}
	conformBadSumOnly(t, f)
	conformClosed(t, f)
}

func conformHoldFailsWith(t *testing.T, conn remote.Conn, c command.Command) {
	t.Helper()
	_, err := conn.Hold(t.Context(), c)
	var exit *remote.ExitError
	if !errors.As(err, &exit) || exit.Result.Exit != 7 {
		t.Errorf("got %v", err)
	}
}

func conformBadSumOnly(t *testing.T, conn remote.Conn) {
	t.Helper()
	u := upload([]byte("data"), "f")
	u.SHA256 = "00"
	wantKind(t, conn.Upload(t.Context(), u), remote.BadTransfer)
}
