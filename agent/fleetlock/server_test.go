package fleetlock

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// fakeGate answers with err and notes who asked for what.
type fakeGate struct {
	err   error
	asked []string
}

func (g *fakeGate) Permit(_ context.Context, who Identity) error {
	g.asked = append(g.asked, "permit "+who.ID+"@"+who.Group)
	return g.err
}

func (g *fakeGate) Settled(_ context.Context, who Identity) error {
	g.asked = append(g.asked, "settled "+who.ID+"@"+who.Group)
	return g.err
}

const zincati = `{"client_params":{"id":"c988d2509fdf5cdcbed39037c56406fb","group":"default"}}`

// proves Z9: what an unmodified Zincati sends is answered, and nothing else is.
func TestHandler(t *testing.T) {
	for name, tc := range map[string]struct {
		method, path, header, body, remote string
		err                                error
		status                             int
		kind, value                        string
	}{
		"pre-reboot":     {body: zincati, status: 200},
		"steady-state":   {path: "/v1/steady-state", body: zincati, status: 200},
		"closed":         {body: zincati, err: gate.Deny(gate.CodeMissing, "there is no file"), status: 409, kind: "gate_missing", value: "there is no file"},
		"closed, hyphen": {body: zincati, err: gate.Deny(gate.CodeNotYet, "soon"), status: 409, kind: "gate_not_yet", value: "soon"},
		"trouble":        {body: zincati, err: errors.New("disk on fire"), status: 500, kind: "failed_gate", value: "disk on fire"},
		"other group":    {body: zincati, err: &Error{Status: 400, Kind: "unknown_group", Value: "no"}, status: 400, kind: "unknown_group", value: "no"},
		"GET":            {method: "GET", body: zincati, status: 405, kind: kindMethod},
		"other path":     {path: "/v1/else", body: zincati, status: 404, kind: kindPath},
		"path above":     {path: "/x/v1/pre-reboot", body: zincati, status: 404, kind: kindPath},
		"no header":      {header: "-", body: zincati, status: 400, kind: kindRequest, value: "header"},
		"header false":   {header: "false", body: zincati, status: 400, kind: kindRequest},
		"no JSON":        {body: "client_params", status: 400, kind: kindRequest},
		"two objects":    {body: zincati + zincati, status: 400, kind: kindRequest},
		"empty":          {body: "", status: 400, kind: kindRequest},
		"no params":      {body: "{}", status: 400, kind: kindRequest, value: "client_params"},
		"no id":          {body: `{"client_params":{"id":"","group":"default"}}`, status: 400, kind: kindRequest},
		"no group":       {body: `{"client_params":{"id":"x"}}`, status: 400, kind: kindRequest},
		"bad group":      {body: `{"client_params":{"id":"x","group":"a b"}}`, status: 400, kind: kindRequest},
		"escape in id":   {body: `{"client_params":{"id":"\u001b[2J","group":"a"}}`, status: 400, kind: kindRequest},
		"huge":           {body: `{"x":"` + strings.Repeat("x", maxBody) + `"}`, status: 400, kind: kindRequest, value: "larger"},
		"later protocol": {body: `{"client_params":{"id":"x","group":"a","more":1},"more":{}}`, status: 200},
		"from outside":   {body: zincati, remote: "192.0.2.1:1234", status: 403, kind: kindRemote},
		"IPv6 loopback":  {body: zincati, remote: "[::1]:1234", status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeGate{err: tc.err}
			method, path, remote := tc.method, tc.path, tc.remote
			if method == "" {
				method = "POST"
			}
			if path == "" {
				path = "/v1/pre-reboot"
			}
			if remote == "" {
				remote = "127.0.0.1:1234"
			}
			r := httptest.NewRequest(method, path, strings.NewReader(tc.body))
			r.RemoteAddr = remote
			switch tc.header {
			case "":
				r.Header.Set(Header, "true")
			case "-":
			default:
				r.Header.Set(Header, tc.header)
			}
			w := httptest.NewRecorder()
			Handler{Gate: g}.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Fatalf("HTTP %d: %s", w.Code, w.Body)
			}
			if tc.status == 200 {
				return
			}
			var e Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Kind != tc.kind || !strings.Contains(e.Value, tc.value) || e.Value == "" {
				t.Errorf("%s %v", w.Body, err)
			}
			if asked := len(g.asked) > 0; asked != (tc.err != nil) {
				t.Errorf("gate asked: %v", g.asked)
			}
		})
	}
}

func TestHandlerAsksForTheRightThing(t *testing.T) {
	g := &fakeGate{}
	server := httptest.NewServer(Handler{Gate: g})
	defer server.Close()
	c := Client{URL: server.URL, ID: "Me"}
	for _, do := range []func(context.Context) error{c.Lock, c.Lock, c.Unlock, c.Unlock} {
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"permit Me@default", "permit Me@default", "settled Me@default", "settled Me@default"}
	if !slices.Equal(g.asked, want) {
		t.Errorf("%q", g.asked)
	}
	if got := (Handler{Gate: g}).Server(); got.ReadTimeout == 0 || got.MaxHeaderBytes == 0 {
		t.Error("a slow or large client is not bounded")
	}
}

func TestConfig(t *testing.T) {
	for text, says := range map[string]string{
		"listen = 127.0.0.1:3333\n":                "",
		"# c\n\n listen=[::1]:3333\ngroup = a.b\n": "",
		"listen = 0.0.0.0:3333":                    "loopback",
		"listen = localhost:3333":                  "loopback",
		"listen = :3333":                           "loopback",
		"listen = 192.0.2.1:3333":                  "loopback",
		"listen = 127.0.0.1":                       "loopback",
		"":                                         "loopback",
		"listen 127.0.0.1:1":                       "not key = value",
		"listen=127.0.0.1:1\nlisten=127.0.0.1:2":   "second time",
		"listen=127.0.0.1:1\nport=2":               "unknown key",
		"listen=127.0.0.1:1\ngroup=a b":            "group",
	} {
		_, err := ParseConfig([]byte(text))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(zincati)
	f.Add(`{"client_params":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		who, err := readIdentity(strings.NewReader(text))
		if err == nil && who.Check() != nil {
			t.Errorf("%+v", who)
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add("listen = 127.0.0.1:3333\ngroup = x")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig([]byte(text))
		if err == nil && c.Check() != nil {
			t.Errorf("%+v", c)
		}
	})
}

var _ http.Handler = Handler{}
