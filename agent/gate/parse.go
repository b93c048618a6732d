package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSize is the most an allow-file may hold, in bytes.
const MaxSize = 64 << 10

// maxText bounds each free text in the file.
const maxText = 1024

// Parse reads an allow-file strictly: one JSON object, known keys only, each at most once and spelt as
// documented, whole numbers of seconds. Everything else is an error of type *Denial, since a file that
// leaves room for doubt is a closed gate (Z2). The clock is not asked here; Decide does that.
func Parse(data []byte) (AllowFile, error) {
	fields, err := object(data)
	if err != nil {
		return AllowFile{}, err
	}
	var f AllowFile
	for _, kv := range fields {
		if err := f.set(kv.key, kv.raw); err != nil {
			return AllowFile{}, err
		}
	}
	if !slices.ContainsFunc(fields, func(kv field) bool { return kv.key == "notAfter" }) {
		return AllowFile{}, Deny(CodeNoEnd, "the allow-file has no notAfter, so it would never end")
	}
	if f.NotBefore != 0 && f.NotBefore >= f.NotAfter {
		return AllowFile{}, Deny(CodeBad, "notBefore %d is not before notAfter %d", f.NotBefore, f.NotAfter)
	}
	return f, nil
}

// set reads one value into its field.
func (f *AllowFile) set(key string, raw json.RawMessage) (err error) {
	switch key {
	case "notAfter":
		f.NotAfter, err = seconds(key, raw)
	case "notBefore":
		f.NotBefore, err = seconds(key, raw)
	case "id":
		f.ID, err = text(key, raw)
	case "operations":
		f.Operations, err = list(key, raw, operation)
	case "packages":
		f.Packages, err = packages(raw)
	case "sha256":
		f.SHA256, err = list(key, raw, digest)
	case "singleUse":
		f.SingleUse, err = boolean(key, raw)
	case "issuedBy":
		f.IssuedBy, err = text(key, raw)
	case "reason":
		f.Reason, err = text(key, raw)
	default:
		err = unknownKey(key)
	}
	return err
}

// knownKeys in the order of the documentation.
func knownKeys() []string {
	return []string{"notAfter", "notBefore", "id", "operations", "packages", "sha256", "singleUse", "issuedBy", "reason"}
}

func unknownKey(key string) error {
	for _, k := range knownKeys() {
		if strings.EqualFold(k, key) {
			return Deny(CodeBadKey, "key %q must be spelt %q", key, k)
		}
	}
	return Deny(CodeBadKey, "unknown key %q; known are %s", key, strings.Join(knownKeys(), ", "))
}

// field is one member of a JSON object, in the order of the file.
type field struct {
	key string
	raw json.RawMessage
}

// object splits a JSON text that must be exactly one object into its members, refusing repeated keys.
func object(data []byte) ([]field, error) {
	switch {
	case len(data) > MaxSize:
		return nil, Deny(CodeTooBig, "the allow-file is larger than %d bytes", MaxSize)
	case len(bytes.TrimSpace(data)) == 0:
		return nil, Deny(CodeNotJSON, "the allow-file is empty")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, Deny(CodeNotJSON, "the allow-file begins with a byte-order mark; write it as plain UTF-8")
	case !utf8.Valid(data):
		return nil, Deny(CodeNotJSON, "the allow-file is not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, Deny(CodeNotJSON, "the allow-file is not one JSON object: %v", err)
	}
	return members("the allow-file", whole)
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

func packages(raw json.RawMessage) (map[string]string, error) {
	fields, err := members("packages", raw)
	if err != nil {
		return nil, Deny(CodeBad, "%v", err)
	}
	if len(fields) == 0 {
		return nil, Deny(CodeBad, "packages is empty; leave it out to permit any")
	}
	m := make(map[string]string, len(fields))
	for _, kv := range fields {
		version, err := text("the version of "+clip(kv.key), kv.raw)
		if err != nil {
			return nil, err
		}
		if err := CheckPackage(kv.key, version); err != nil {
			return nil, Deny(CodeBad, "packages is wrong: %v", err)
		}
		m[kv.key] = version
	}
	return m, nil
}

// CheckPackage reports what is wrong with a package name and Debian version, or nil.
func CheckPackage(name, version string) error {
	if ok, _ := regexp.MatchString(`^[a-z0-9][a-z0-9+.-]{1,127}$`, name); !ok {
		return fmt.Errorf("%q is no package name", clip(name))
	}
	if ok, _ := regexp.MatchString(`^[0-9A-Za-z][0-9A-Za-z.+~:-]{0,127}$`, version); !ok {
		return fmt.Errorf("%q is no version for %s", clip(version), name)
	}
	return nil
}

func operation(s string) error {
	if !slices.Contains(Operations(), s) {
		return fmt.Errorf("%q is no operation; known are %s", clip(s), strings.Join(Operations(), ", "))
	}
	return nil
}

func digest(s string) error {
	if ok, _ := regexp.MatchString(`^[0-9a-f]{64}$`, s); !ok {
		return fmt.Errorf("%q is no SHA-256 in lower-case hex", clip(s))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
