package command

import (
	"bytes"
	"fmt"

	"al.essio.dev/pkg/shellescape"
)

// ShellLine is the exec line that reads a script from standard input. It has no special
// characters, so that a login shell that is not POSIX passes it on unharmed.
const ShellLine = "/bin/sh -s"

// becomeScript is fixed. Its first parameter is printed once sudo let us in.
const becomeScript = `printf "\n%s ready\n" "$1"; exec /bin/sh -s`

// BecomeLine is the exec line that reads a script from standard input as root, for hosts where
// sudo wants a password. What sudo says is read, so it speaks English. sudo writes prompt to stderr if it wants one; the line "<nonce> ready"
// appears on stdout once the shell runs. The script must not be sent before that: sudo that needs no
// password would otherwise leave the password to the shell.
func BecomeLine(prompt, nonce string) string {
	return shellescape.QuoteCommand([]string{
		"env", "LC_ALL=C", "LANGUAGE=", "sudo", "-S", "-p", prompt, "--", "/bin/sh", "-c", becomeScript, "sh", nonce,
	})
}

// prelude sets what parsed output depends on, and defines the frames. Every frame goes to both
// streams, so that each can be taken apart by itself. Frames start with a line feed of their own: the
// output before them may end without one.
const prelude = `LC_ALL=C LANGUAGE= PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export LC_ALL LANGUAGE PATH
n=%s
f() { printf '\n%%s %%s\n' "$n" "$*"; printf '\n%%s %%s\n' "$n" "$*" >&2; }
`

// Script is the batch as a script for [ShellLine]. The nonce frames its output: lower-case letters and
// digits, unguessable by anything that runs on the host. It works in dash, bash, busybox sh and mvdan.cc/sh.
func (b Batch) Script(nonce string) []byte {
	return b.script(nonce, Command.String)
}

// ElevatedScript is the batch as a script for [BecomeLine]: the same commands, run by a shell that is
// already root.
func (b Batch) ElevatedScript(nonce string) []byte {
	return b.script(nonce, Command.elevated)
}

func (b Batch) script(nonce string, line func(Command) string) []byte {
	var s bytes.Buffer
	fmt.Fprintf(&s, prelude, nonce)
	for i, c := range b.Commands {
		fmt.Fprintf(&s, "f b %d\n", i)
		if len(c.Stdin) > 0 {
			fmt.Fprintf(&s, "printf '%s' | %s\n", printfFormat(c.Stdin), line(c))
		} else {
			fmt.Fprintf(&s, "%s </dev/null\n", line(c))
		}
		fmt.Fprintf(&s, "r=$?; f e %d $r\n", i)
		if b.StopOnFailure {
			s.WriteString("[ $r -eq 0 ] || { f z; exit 0; }\n")
		}
	}
	s.WriteString("f z\n")
	return s.Bytes()
}

// HeldScript is a script that becomes the command, with standard input left open for it. It ends with one
// line on purpose: the shell has read all of it before the begin frame appears, so whatever is sent after
// that frame reaches the command. elevated: for [BecomeLine] instead of [ShellLine].
func (c Command) HeldScript(nonce string, elevated bool) []byte {
	line := c.String()
	if elevated {
		line = c.elevated()
	}
	return []byte(fmt.Sprintf(prelude, nonce) + "f b 0; exec " + line + "\n")
}

// printfFormat writes data as a single-quoted printf format. Everything but harmless ASCII becomes a
// three-digit octal escape, which all shells agree on.
func printfFormat(data []byte) string {
	var s bytes.Buffer
	for _, b := range data {
		switch {
		case b == '%':
			s.WriteString("%%")
		case b == '\n':
			s.WriteString(`\n`)
		case b < ' ' || b > '~' || b == '\\' || b == '\'':
			fmt.Fprintf(&s, `\%03o`, b)
		default:
			s.WriteByte(b)
		}
	}
	return s.String()
}
