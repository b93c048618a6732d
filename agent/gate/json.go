package gate

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is one member of a JSON object, in the order of the file.
type field struct {
	key string
	raw json.RawMessage
}

// object splits a JSON text that must be exactly one object into its members, refusing repeated keys.
func object(what string, data []byte) ([]field, error) {
	switch {
	case len(data) > MaxSize:
		return nil, Deny(CodeTooBig, "%s is larger than %d bytes", what, MaxSize)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, Deny(CodeNotJSON, "%s is empty", what)
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, Deny(CodeNotJSON, "%s begins with a byte-order mark; write it as plain UTF-8", what)
	case !utf8.Valid(data):
		return nil, Deny(CodeNotJSON, "%s is not UTF-8", what)
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, Deny(CodeNotJSON, "%s is not one JSON object: %v", what, err)
	}
	return members(what, whole)
}

// members reads a syntactically valid JSON value that must be an object.
func members(what string, raw json.RawMessage) ([]field, error) {
	if kind(raw) != "an object" {
		return nil, Deny(CodeNotJSON, "%s must be an object, not %s", what, kind(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, Deny(CodeNotJSON, "cannot read %s: %v", what, err)
	}
	var fields []field
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, Deny(CodeNotJSON, "cannot read %s: %v", what, err)
		}
		key, _ := tok.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, Deny(CodeNotJSON, "cannot read %s: %v", what, err)
		}
		if slices.ContainsFunc(fields, func(f field) bool { return f.key == key }) {
			return nil, Deny(CodeBadKey, "key %q is there twice in %s", key, what)
		}
		fields = append(fields, field{key, value})
	}
	return fields, nil
}

// kind names a JSON value's type in words.
func kind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch c := raw[0]; {
	case c == '{':
		return "an object"
	case c == '[':
		return "a list"
	case c == '"':
		return "a string"
	case c == 't' || c == 'f':
		return "a boolean"
	case c == 'n':
		return "null"
	case bytes.ContainsAny(raw, ".eE"):
		return "a number with a fraction or exponent"
	default:
		return "a number"
	}
}

// seconds reads a time: a whole number of Unix seconds. The year 5138 is 1e11 seconds away, so a larger
// number is a smaller unit by mistake.
func seconds(key string, raw json.RawMessage) (int64, error) {
	if k := kind(raw); k != "a number" {
		return 0, Deny(CodeBad, "%s must be a whole number of Unix seconds, not %s", key, k)
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(raw)), 10, 64)
	switch {
	case err != nil:
		return 0, Deny(CodeBad, "%s %s is no plausible time in Unix seconds", key, clip(string(raw)))
	case n <= 0:
		return 0, Deny(CodeBad, "%s is %d; it must be a positive number of Unix seconds", key, n)
	}
	if unit := unitOf(n); unit != "seconds" {
		return 0, Deny(CodeUnit, "%s %d looks like %s; it must be Unix seconds", key, n, unit)
	}
	return n, nil
}

// unitOf guesses which unit a number of time since 1970 was written in.
func unitOf(n int64) string {
	switch {
	case n < 1e11:
		return "seconds"
	case n < 1e14:
		return "milliseconds"
	case n < 1e17:
		return "microseconds"
	default:
		return "nanoseconds"
	}
}

func text(key string, raw json.RawMessage) (string, error) {
	if k := kind(raw); k != "a string" {
		return "", Deny(CodeBad, "%s must be a string, not %s", key, k)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", Deny(CodeBad, "cannot read %s: %v", key, err)
	}
	if len(s) > maxText {
		return "", Deny(CodeBad, "%s is longer than %d bytes", key, maxText)
	}
	// These texts end up on terminals: nothing in them may move a cursor.
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", Deny(CodeBad, "%s holds characters that cannot be printed", key)
	}
	return s, nil
}

func boolean(key string, raw json.RawMessage) (bool, error) {
	if k := kind(raw); k != "a boolean" {
		return false, Deny(CodeBad, "%s must be true or false, not %s", key, k)
	}
	return string(bytes.TrimSpace(raw)) == "true", nil
}

// list reads a list of strings. An empty one is refused: it could be meant as "none" and as "any".
func list(key string, raw json.RawMessage, check func(string) error) ([]string, error) {
	if k := kind(raw); k != "a list" {
		return nil, Deny(CodeBad, "%s must be a list of strings, not %s", key, k)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, Deny(CodeBad, "cannot read %s: %v", key, err)
	}
	if len(items) == 0 {
		return nil, Deny(CodeBad, "%s is an empty list; leave it out to permit any", key)
	}
	values := make([]string, 0, len(items))
	for _, item := range items {
		s, err := text("an entry of "+key, item)
		if err != nil {
			return nil, err
		}
		if err := check(s); err != nil {
			return nil, Deny(CodeBad, "an entry of %s is wrong: %v", key, err)
		}
		values = append(values, s)
	}
	return values, nil
}

// word reads a string that must be in a certain form.
func word(key string, raw json.RawMessage, check func(string) error) (string, error) {
	s, err := text(key, raw)
	if err != nil {
		return "", err
	}
	if err := check(s); err != nil {
		return "", Deny(CodeBad, "%s is wrong: %v", key, err)
	}
	return s, nil
}
