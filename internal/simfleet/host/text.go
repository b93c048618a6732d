package host

import (
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// textPrograms are the filters.
func textPrograms() map[string]program {
	return map[string]program{
		"cat": catProgram, "grep": grepProgram, "head": headProgram, "tail": tailProgram, "wc": wcProgram,
		"sort": sortProgram, "cut": cutProgram, "tr": trProgram, "tee": teeProgram,
	}
}

// inputs reads the named files, or standard input if there are none or for "-".
func (m *Machine) inputs(p *shell.Proc, names []string, each func(name string, data []byte)) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	code := 0
	for _, name := range names {
		var data []byte
		var err error
		if name == "-" {
			data, err = io.ReadAll(p.Stdin)
		} else {
			data, err = m.fs.ReadFile(p.Cred, p.Path(name))
		}
		if err != nil {
			code = p.Fail(1, "%s: %s", name, reason(err))
			continue
		}
		each(name, data)
	}
	return code
}

func catProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-u", "", false)
	if o.bad != "" {
		return p.Fail(1, "invalid option -- '%s'", strings.Trim(o.bad, "-"))
	}
	if len(o.args) == 0 {
		_, err := io.Copy(p.Stdout, p.Stdin)
		if err != nil {
			return 1
		}
		return 0
	}
	return m.inputs(p, o.args, func(_ string, data []byte) { _, _ = p.Stdout.Write(data) })
}

func teeProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-a --append", "", false)
	data, err := io.ReadAll(p.Stdin)
	if err != nil {
		return 1
	}
	_, _ = p.Stdout.Write(data)
	code := 0
	for _, name := range o.args {
		if err := m.write(p, name, data, o.has("-a", "--append")); err != nil {
			code = p.Fail(1, "%s: %s", name, reason(err))
		}
	}
	return code
}

func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func grepProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-q -v -i -c -F -E -x -o -s -h -n -w", "-e -m", false)
	pattern, files := o.get("-e"), o.args
	if !o.has("-e") {
		if len(files) == 0 {
			return p.Fail(2, "no pattern")
		}
		pattern, files = files[0], files[1:]
	}
	if o.bad != "" {
		m.noteUnknown("grep " + o.bad)
		return p.Fail(2, "unknown option %s", o.bad)
	}
	re, err := grepPattern(pattern, o)
	if err != nil {
		return p.Fail(2, "%v", err)
	}
	count := 0
	code := m.inputs(p, files, func(name string, data []byte) {
		for _, line := range lines(data) {
			if re.MatchString(line) == o.has("-v") {
				continue
			}
			count++
			switch {
			case o.has("-q", "-c"):
			case o.has("-o"):
				p.Printf("%s\n", re.FindString(line))
			case len(files) > 1 && !o.has("-h"):
				p.Printf("%s:%s\n", name, line)
			default:
				p.Printf("%s\n", line)
			}
		}
	})
	if o.has("-c") {
		p.Printf("%d\n", count)
	}
	switch {
	case code != 0 && !(o.has("-q") && count > 0):
		return 2
	case count == 0:
		return 1
	}
	return 0
}

func grepPattern(pattern string, o options) (*regexp.Regexp, error) {
	switch {
	case o.has("-F"):
		pattern = regexp.QuoteMeta(pattern)
	case !o.has("-E"):
		pattern = basicRegexp(pattern)
	}
	if o.has("-w") {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if o.has("-x") {
		pattern = "^(?:" + pattern + ")$"
	}
	if o.has("-i") {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

// basicRegexp turns a POSIX basic regular expression into Go's syntax: there \( \) \{ \} \| are the special ones.
func basicRegexp(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if !strings.ContainsRune("(){}|+?", rune(s[i])) {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		case strings.ContainsRune("(){}|+?", rune(c)):
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
