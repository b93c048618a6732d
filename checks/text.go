package checks

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kibotos/kibo-rollout/remote/command"
)

const (
	maxOutput = 16 << 20 // bytes of one command's output that are looked at
	maxText   = 500      // runes of foreign text that get into a finding
)

// printable makes foreign text safe for one line of a terminal or a log: no control characters, nothing that reorders or
// hides text, bounded.
func printable(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > maxText {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case r == utf8.RuneError || !unicode.IsPrint(r):
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// suspicious reports whether text has characters that tables and reports never have.
func suspicious(s string) bool {
	if !utf8.ValidString(s) {
		return true
	}
	return strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r)
	})
}

// sound refuses output that was cut or is absurdly long, whatever its exit status.
func sound(res command.Result) error {
	if res.Truncated || len(res.Stdout) > maxOutput {
		return fmt.Errorf("the output was cut: longer than can be kept")
	}
	return nil
}

// succeeded refuses everything but exit 0, with what the program said of it.
func succeeded(res command.Result) error {
	if err := sound(res); err != nil {
		return err
	}
	if res.Exit == 0 {
		return nil
	}
	return fmt.Errorf("exit status %d%s", res.Exit, said(res))
}

// said is the last line of what a failed program printed: the one that says why.
func said(res command.Result) string {
	for _, out := range [][]byte{res.Stderr, res.Stdout} {
		if len(out) > 64<<10 {
			out = out[len(out)-64<<10:]
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if last := printable(lines[len(lines)-1]); last != "" {
			return ": " + last
		}
	}
	return ""
}

// word accepts a text of a closed alphabet, as names, ids and states are.
func word(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-:@+~", r))
	})
}
