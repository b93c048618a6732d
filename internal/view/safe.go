package view

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on remote text in one place of a view, in bytes.
const (
	safeBound = 64 << 10
	lineBound = 4 << 10
)

// Safe makes remote text harmless for a terminal and honest to the eye: control characters, escape sequences, C1
// bytes, bidirectional overrides, invisible characters and broken UTF-8 are shown as \x1b or \u202e instead of being
// obeyed. Newlines and tabs stay, CR LF is a newline. Text over 64 KiB is cut, and says so. What is safe stays as it is.
func Safe(s string) string { return safe(s, safeBound, true) }

// Line is Safe on one line: newlines and tabs are shown too, at most 4 KiB.
func Line(s string) string { return safe(strings.TrimRight(s, "\r\n"), lineBound, false) }

func safe(s string, bound int, lines bool) string {
	rest := 0
	if len(s) > bound {
		end := bound
		for end > bound-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s, rest = s[:end], len(s)-end
	}
	if lines {
		s = strings.ReplaceAll(s, "\r\n", "\n")
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'), shows(r):
			b.WriteRune(r)
		default:
			b.WriteString(spelled(r))
		}
		i += n
	}
	if rest > 0 {
		fmt.Fprintf(&b, " … (%d more bytes)", rest)
	}
	return b.String()
}

// shows reports whether a terminal draws r as what it is: letters, marks, digits, punctuation, symbols, the space and
// the wide space of CJK text.
func shows(r rune) bool {
	if r == '\u3000' {
		return true
	}
	// Fillers and joiners count as letters or marks and are drawn as nothing: two names could look the same.
	invisible := r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u2800' ||
		r >= '\ufe00' && r <= '\ufe0f' || r >= 0xe0100 && r <= 0xe01ef
	return unicode.IsPrint(r) && !invisible
}

func spelled(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r <= 0xff:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
