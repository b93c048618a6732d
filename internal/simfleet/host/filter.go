package host

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

func headProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-q", "-n -c", false)
	n := count(o, 10)
	return m.inputs(p, o.args, func(_ string, data []byte) {
		if o.has("-c") {
			size, _ := strconv.Atoi(o.get("-c"))
			_, _ = p.Stdout.Write(data[:min(max(size, 0), len(data))])
			return
		}
		all := lines(data)
		for _, line := range all[:min(n, len(all))] {
			p.Printf("%s\n", line)
		}
	})
}

func tailProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-q", "-n -c", false)
	n := count(o, 10)
	return m.inputs(p, o.args, func(_ string, data []byte) {
		if o.has("-c") {
			size, _ := strconv.Atoi(o.get("-c"))
			_, _ = p.Stdout.Write(data[max(0, len(data)-max(size, 0)):])
			return
		}
		all := lines(data)
		from := max(0, len(all)-n)
		if strings.HasPrefix(o.get("-n"), "+") {
			from = min(max(n-1, 0), len(all))
		}
		for _, line := range all[from:] {
			p.Printf("%s\n", line)
		}
	})
}

func count(o options, fallback int) int {
	v := o.get("-n")
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(strings.TrimLeft(v, "+-"))
	if err != nil {
		return fallback
	}
	return n
}

func wcProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-l -c -w", "", false)
	return m.inputs(p, o.args, func(name string, data []byte) {
		var nums []string
		if o.has("-l") || len(o.set) == 0 {
			nums = append(nums, strconv.Itoa(bytes.Count(data, []byte("\n"))))
		}
		if o.has("-w") || len(o.set) == 0 {
			nums = append(nums, strconv.Itoa(len(bytes.Fields(data))))
		}
		if o.has("-c") || len(o.set) == 0 {
			nums = append(nums, strconv.Itoa(len(data)))
		}
		if name != "-" {
			nums = append(nums, name)
		}
		p.Printf("%s\n", strings.Join(nums, " "))
	})
}

func sortProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-u -r -n", "-k -t", false)
	var all []string
	code := m.inputs(p, o.args, func(_ string, data []byte) { all = append(all, lines(data)...) })
	if o.has("-n") {
		slices.SortStableFunc(all, func(a, b string) int { return leadingInt(a) - leadingInt(b) })
	} else {
		slices.Sort(all)
	}
	if o.has("-u") {
		all = slices.Compact(all)
	}
	if o.has("-r") {
		slices.Reverse(all)
	}
	for _, line := range all {
		p.Printf("%s\n", line)
	}
	return code
}

func leadingInt(s string) int {
	s = strings.TrimSpace(s)
	end := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) })
	if end >= 0 {
		s = s[:end]
	}
	n, _ := strconv.Atoi(s)
	return n
}

func cutProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-s", "-d -f -c", false)
	delim := o.get("-d")
	if delim == "" {
		delim = "\t"
	}
	return m.inputs(p, o.args, func(_ string, data []byte) {
		for _, line := range lines(data) {
			p.Printf("%s\n", cutLine(line, delim, o))
		}
	})
}

func cutLine(line, delim string, o options) string {
	spec, sep := o.get("-f"), delim
	var fields []string
	if o.has("-c") {
		spec, sep = o.get("-c"), ""
		fields = strings.Split(line, "")
	} else if fields = strings.Split(line, delim); len(fields) == 1 {
		return line
	}
	var out []string
	for _, r := range strings.Split(spec, ",") {
		from, to, ranged := strings.Cut(r, "-")
		a, _ := strconv.Atoi(from)
		b, _ := strconv.Atoi(to)
		if !ranged {
			b = a
		} else if to == "" {
			b = len(fields)
		}
		for i := max(a, 1); i <= min(b, len(fields)); i++ {
			out = append(out, fields[i-1])
		}
	}
	return strings.Join(out, sep)
}

func trProgram(_ context.Context, m *Machine, p *shell.Proc) int {
	o := parse(p.Args[1:], "-d -s", "", false)
	data, err := io.ReadAll(bufio.NewReader(p.Stdin))
	if err != nil || len(o.args) == 0 {
		return p.Fail(1, "missing operand")
	}
	from := trSet(o.args[0])
	if o.has("-d") {
		_, _ = p.Stdout.Write(bytes.Map(func(r rune) rune {
			if slices.Contains(from, r) {
				return -1
			}
			return r
		}, data))
		return 0
	}
	if len(o.args) < 2 {
		m.noteUnknown("tr " + strings.Join(p.Args[1:], " "))
		return p.Fail(1, "missing operand after '%s'", o.args[0])
	}
	to := trSet(o.args[1])
	_, _ = p.Stdout.Write(bytes.Map(func(r rune) rune {
		i := slices.Index(from, r)
		if i < 0 || len(to) == 0 {
			return r
		}
		return to[min(i, len(to)-1)]
	}, data))
	return 0
}

func trSet(s string) []rune {
	s = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`).Replace(s)
	var out []rune
	all := []rune(s)
	for i := 0; i < len(all); i++ {
		if i+2 < len(all) && all[i+1] == '-' {
			for r := all[i]; r <= all[i+2]; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, all[i])
	}
	return out
}
