package gate

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestHoldRoundTrip(t *testing.T) {
	h := Hold{ID: "disk", Who: "ann", Why: "disk \"swap\"", Since: time.Unix(1800000000, 0).UTC()}
	data, err := h.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseHold("disk", data); err != nil || got != h {
		t.Errorf("got %+v %v", got, err)
	}
	if got, err := ParseHold("hand", []byte(`{"who":"ben","why":"demo"}`)); err != nil || got.Words() != "ben holds this host: demo (hold hand)" {
		t.Errorf("got %+v %v", got, err)
	}
}

func TestParseHoldRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"":                                  "is empty",
		"no!":                               "is not one JSON object",
		`[]`:                                "a list",
		`{"who":"ann"}`:                     "who and why",
		`{"who":"ann","why":""}`:            "who and why",
		`{"who":"ann","why":"x","who":"b"}`: "twice",
		`{"who":"ann","why":"x","for":1}`:   "unknown key",
		`{"who":"ann","why":"\u001b[2J"}`:   "printed",
		`{"who":"ann","why":"x","since":"today"}`: "a string",
		strings.Repeat(" ", MaxSize+1):            "larger than",
	} {
		if _, err := ParseHold("x", []byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", in, err, says)
		}
	}
	for id, ok := range map[string]bool{"a": true, "20270115-080000": true, "": false, ".x": false, "a/b": false, "..": false,
		"-a": false, strings.Repeat("a", 100): true, strings.Repeat("a", 101): false} {
		if (CheckHoldID(id) == nil) != ok {
			t.Errorf("%q: %v", id, CheckHoldID(id))
		}
	}
}

func FuzzParseHold(f *testing.F) {
	for _, s := range []string{`{"who":"ann","why":"x","since":1800000000}`, "", "{", `{"who":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ParseHold("x", data)
		var d *Denial
		if err != nil && !errors.As(err, &d) {
			t.Fatalf("an error without a code: %v", err)
		}
		if err == nil && (h.Who == "" || h.Why == "") {
			t.Fatalf("accepted %+v", h)
		}
	})
}
