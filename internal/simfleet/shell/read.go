package shell

import (
	"io"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// readLine is `read` on the process's own standard input: it takes one line and no byte more, and answers
// with assignments for the interpreter to evaluate. Backslashes are kept, as with -r.
func readLine(in io.Reader, args []string) []string {
	var names []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	line, err := ReadLine(in)
	words := strings.Fields(line)
	var s strings.Builder
	for i, name := range names {
		var value string
		switch {
		case i >= len(words):
		case i == len(names)-1:
			value = strings.Join(words[i:], " ")
		default:
			value = words[i]
		}
		s.WriteString(name + "=" + shellescape.Quote(value) + "; ")
	}
	if err != nil {
		s.WriteString("false")
	} else {
		s.WriteString("true")
	}
	return []string{"eval", s.String()}
}
