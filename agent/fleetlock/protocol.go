// Package fleetlock speaks Zincati's FleetLock protocol, both ends of it: a client that takes and gives back a slot
// of a site's own lock service, such as airlock, and a handler that answers an unmodified Zincati on its own host
// (Z9). The protocol has two requests, both POST: v1/pre-reboot locks, v1/steady-state unlocks. A lock belongs to an
// id, is recursive and never ends by itself.
package fleetlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Header must be on every request, with the value "true".
const Header = "fleet-lock-protocol"

// The two requests, relative to the base URL.
const (
	PreReboot   = "v1/pre-reboot"
	SteadyState = "v1/steady-state"
)

// DefaultGroup is the group of clients that name none.
const DefaultGroup = "default"

const (
	maxBody = 16 << 10
	maxText = 512
)

// Identity is who asks.
type Identity struct {
	ID    string `json:"id"`    // case matters
	Group string `json:"group"` // letters, digits, dots and hyphens
}

// Check reports what is wrong with the identity, or nil.
func (i Identity) Check() error {
	switch {
	case i.ID == "":
		return errors.New("the id is empty")
	case len(i.ID) > maxText || strings.ContainsFunc(i.ID, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the id is too long or cannot be printed")
	}
	if ok, _ := regexp.MatchString(`^[a-zA-Z0-9.-]{1,200}$`, i.Group); !ok {
		return errors.New("the group must consist of letters, digits, dots and hyphens")
	}
	return nil
}

// body is what a client sends.
type body struct {
	Params *Identity `json:"client_params"`
}

// readIdentity reads a request's body: one JSON object of bounded size with client_params. Keys it does not know
// are left alone, as a later protocol may have more.
func readIdentity(r io.Reader) (Identity, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return Identity{}, fmt.Errorf("cannot read the request: %w", err)
	}
	if len(data) > maxBody {
		return Identity{}, fmt.Errorf("the request is larger than %d bytes", maxBody)
	}
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		return Identity{}, fmt.Errorf("the request is not one JSON object: %w", err)
	}
	if b.Params == nil {
		return Identity{}, errors.New("the request has no client_params")
	}
	if err := b.Params.Check(); err != nil {
		return Identity{}, fmt.Errorf("client_params: %w", err)
	}
	return *b.Params, nil
}

// Error is a refusal: of the server, or of the way to it.
type Error struct {
	Kind   string `json:"kind"`  // few fixed words; "" if the answer had none
	Value  string `json:"value"` // one sentence
	Status int    `json:"-"`     // HTTP status; 0: no answer came
	Err    error  `json:"-"`     // why no answer came
}

// Kinds of an Error that the client makes itself.
const (
	KindNoAnswer = "client_failed_request" // no answer came
	KindForeign  = "client_failed_answer"  // the answer was none of this protocol
)

// Error is the sentence, with the kind.
func (e *Error) Error() string {
	if e.Status == 0 {
		return e.Value
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", e.Value, e.Kind, e.Status)
}

// Unwrap is why no answer came.
func (e *Error) Unwrap() error { return e.Err }

// Again reports whether the same request may succeed later: a full semaphore, a conflict, a server that is away. What
// a client did wrong stays wrong.
func (e *Error) Again() bool {
	return e.Status == 0 || e.Status >= 500 || e.Status == 408 || e.Status == 409 || e.Status == 423 || e.Status == 429
}

// readError reads the body of a refusal. airlock sends JSON under the content type text/plain, and proxies send
// pages of their own.
func readError(status int, r io.Reader) *Error {
	data, _ := io.ReadAll(io.LimitReader(r, maxBody)) // what came of it is better than nothing
	e := &Error{Status: status}
	if json.Unmarshal(bytes.TrimSpace(data), e) != nil || e.Kind == "" || e.Value == "" {
		*e = Error{Status: status, Kind: KindForeign, Value: fmt.Sprintf("the answer is not one of FleetLock: %q", clip(printable(string(data))))}
	}
	e.Kind, e.Value = clip(printable(e.Kind)), clip(printable(e.Value))
	return e
}

func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// printable drops what could move a cursor from a text of unknown origin.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.TrimSpace(s))
}
