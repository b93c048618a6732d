package fleetlock

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// answers serves the given answers one after another, the last one for ever, and notes what was asked.
type answers struct {
	list  []answer
	asked []string
}

type answer struct {
	status int
	body   string
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.asked = append(a.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get(Header)+" "+string(body))
	now := a.list[0]
	if len(a.list) > 1 {
		a.list = a.list[1:]
	}
	if now.status == http.StatusFound {
		w.Header().Set("location", "/elsewhere")
	}
	http.Error(w, now.body, now.status) // as airlock does: text/plain
}

// client is a client of a server with those answers, and the pauses it made.
func client(t *testing.T, list ...answer) (Client, *answers, *[]time.Duration) {
	t.Helper()
	a := &answers{list: list}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	var pauses []time.Duration
	c := Client{URL: server.URL + "/base/", Group: "kibo", ID: "run-1",
		Pause: func(_ context.Context, d time.Duration) { pauses = append(pauses, d) }}
	return c, a, &pauses
}

const full = `{"kind":"failed_lock","value":"all 1 slots locked"}`

func TestLockWaits(t *testing.T) {
	c, a, pauses := client(t, answer{500, full}, answer{502, "<html>proxy</html>"}, answer{503, ""}, answer{200, ""})
	var kinds []string
	c.Waiting = func(e *Error, _ time.Duration) { kinds = append(kinds, e.Kind) }
	if err := c.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"failed_lock", KindForeign, KindForeign}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	if want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}; !slices.Equal(*pauses, want) {
		t.Errorf("%v", *pauses)
	}
	want := `POST /base/v1/pre-reboot true {"client_params":{"id":"run-1","group":"kibo"}}`
	if len(a.asked) != 4 || a.asked[0] != want || a.asked[3] != want {
		t.Errorf("%q", a.asked)
	}
}

func TestUnlock(t *testing.T) {
	c, a, _ := client(t, answer{500, `{"kind":"failed_lock","value":"conflict on semaphore detected, aborting"}`}, answer{200, ""})
	if err := c.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.asked) != 2 || !strings.HasPrefix(a.asked[1], "POST /base/v1/steady-state true") {
		t.Errorf("%q", a.asked)
	}
}

// A mistake is not asked again.
func TestLockMistakes(t *testing.T) {
	for name, tc := range map[string]struct {
		answer answer
		kind   string
	}{
		"unknown group": {answer{400, `{"kind":"unknown_group","value":"unknown group \"kibo\""}`}, "unknown_group"},
		"a web page":    {answer{404, "<html>not here</html>"}, KindForeign},
		"elsewhere":     {answer{302, ""}, KindForeign},
		"no content":    {answer{204, ""}, KindForeign},
		"escapes":       {answer{400, `{"kind":"a","value":"\u001b[2Jx"}`}, "a"},
		"half an error": {answer{400, `{"kind":"a"}`}, KindForeign},
	} {
		c, a, _ := client(t, tc.answer)
		err := c.Lock(t.Context())
		var e *Error
		if !errors.As(err, &e) || e.Kind != tc.kind || e.Status != tc.answer.status || len(a.asked) != 1 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, asked %d times", name, err, len(a.asked))
		}
	}
	for _, c := range []Client{{URL: "x", ID: "a"}, {URL: "ftp://x/", ID: "a"}, {URL: "http://x/?q", ID: "a"}, {URL: "http://x", ID: ""}, {URL: "http://x", ID: "a", Group: "a b"}, {URL: "http://[", ID: "a"}} {
		if err := c.Lock(t.Context()); err == nil {
			t.Errorf("%+v was used", c)
		}
	}
}

// proves Z4: it ends when its context does, and says both why and what the last answer was.
func TestLockGivesUp(t *testing.T) {
	c, _, _ := client(t, answer{500, full})
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	c.Pause = func(context.Context, time.Duration) {
		if tries++; tries == 3 {
			cancel()
		}
	}
	err := c.Lock(ctx)
	var e *Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Kind != "failed_lock" || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	c.URL = "http://127.0.0.1:1/"
	err = c.TryLock(t.Context())
	if !errors.As(err, &e) || e.Kind != KindNoAnswer || !e.Again() {
		t.Errorf("%v", err)
	}
	c.Pause = nil
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := c.Lock(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestSemaphore(t *testing.T) {
	// {"total_slots":1,"holders":["run-1"]} as etcd's gateway gives it.
	text := `{"header":{},"kvs":[{"key":"x","value":"eyJ0b3RhbF9zbG90cyI6MSwiaG9sZGVycyI6WyJydW4tMSJdfQ=="}],"count":"1"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v3/kv/range" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	s, err := ReadSemaphore(t.Context(), server.Client(), server.URL, "kibo")
	if err != nil || s.Slots != 1 || !slices.Equal(s.Holders, []string{"run-1"}) {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := parseSemaphore([]byte(`{"header":{}}`)); err != nil || s.Slots != 0 {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := ReadSemaphore(t.Context(), server.Client(), server.URL+"/x", "kibo"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
	if got := SemaphoreKey("a.b-c"); got != "com.coreos.airlock/groups/a.b-c/v1/semaphore" {
		t.Error(got)
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add(full)
	f.Add("<html>")
	f.Fuzz(func(t *testing.T, text string) {
		e := readError(500, strings.NewReader(text))
		if e.Kind == "" || e.Value == "" || strings.ContainsAny(e.Error(), "\x1b\n") {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzSemaphore(f *testing.F) {
	f.Add(`{"kvs":[{"value":"e30="}]}`)
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseSemaphore([]byte(text)) })
}
