package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/kibotos/kibo-rollout/run"
)

// JSON writes v as one indented document. Whatever a terminal would obey or hide is escaped, so that looking at the
// output is as harmless as reading it with a program.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return write(w, &b, enc.Encode(v))
}

// JSONLine writes v as one document on one line.
func JSONLine(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	return write(w, &b, enc.Encode(v))
}

func write(w io.Writer, doc *bytes.Buffer, err error) error {
	if err != nil {
		return fmt.Errorf("cannot encode output: %w", err)
	}
	if _, err := w.Write(escaped(doc.Bytes())); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// escaped turns what a terminal would not show into JSON escapes. Characters beyond ASCII, and DEL, occur in strings only.
func escaped(doc []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(doc) {
		switch {
		case r < 0x7f, shows(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// JSONEvents writes a walk as JSON lines, one event each.
type JSONEvents struct{ Out io.Writer }

// Observe writes one event. A reader that went away must not end a walk.
func (v JSONEvents) Observe(e run.Event) { _ = JSONLine(v.Out, e) }
