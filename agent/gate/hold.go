package gate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// HoldsPath is the directory of the holds, one file each.
const HoldsPath = "/var/lib/kibo-agent/holds"

// Hold is one person's no on a host: nothing that changes it goes through until the hold is released. A hold
// that cannot be read is one as well, with the trouble in Why.
type Hold struct {
	ID    string    `json:"id"` // the file's name
	Who   string    `json:"who"`
	Why   string    `json:"why"`
	Since time.Time `json:"since,omitzero"` // UTC; zero: not known
}

// Words is the hold as one sentence.
func (h Hold) Words() string {
	since := ""
	if !h.Since.IsZero() {
		since = " since " + Clock(h.Since.Unix())
	}
	return fmt.Sprintf("%s holds this host%s: %s (hold %s)", h.Who, since, h.Why, h.ID)
}

// CheckHoldID reports what is wrong with a hold's id, or nil. It becomes a file's name, and a name that begins
// with a dot is a file in the making.
func CheckHoldID(id string) error {
	if ok, _ := regexp.MatchString(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`, id); !ok {
		return fmt.Errorf("%q is no id of a hold: up to 100 letters, digits, dots, underscores and hyphens", clip(id))
	}
	return nil
}

// Text is the hold as its file holds it.
func (h Hold) Text() ([]byte, error) {
	data, err := json.Marshal(map[string]any{"who": h.Who, "why": h.Why, "since": h.Since.Unix()})
	if err != nil {
		return nil, fmt.Errorf("cannot encode hold %s: %w", h.ID, err)
	}
	return append(data, '\n'), nil
}

// ParseHold reads a hold's file as strictly as an allow-file. The error says what is wrong; the hold holds all
// the same, so that nobody who wrote "no" is overheard for a comma.
func ParseHold(id string, data []byte) (Hold, error) {
	h := Hold{ID: id}
	fields, err := object("the hold", data)
	if err != nil {
		return h, err
	}
	for _, kv := range fields {
		switch kv.key {
		case "who":
			h.Who, err = text(kv.key, kv.raw)
		case "why":
			h.Why, err = text(kv.key, kv.raw)
		case "since":
			var n int64
			if n, err = seconds(kv.key, kv.raw); err == nil {
				h.Since = time.Unix(n, 0).UTC()
			}
		default:
			err = Deny(CodeBadKey, "unknown key %q", clip(kv.key))
		}
		if err != nil {
			return h, err
		}
	}
	if h.Who == "" || h.Why == "" {
		return h, Deny(CodeBad, "the hold does not say who and why")
	}
	return h, nil
}
