package host

import "strings"

// options are the parsed words of one call, in the way of getopt_long.
type options struct {
	set  map[string][]string // option, with its dashes → values, in order
	args []string
	bad  string // first option that is not known
}

// parse reads words after the program's name. Names in flags take no value, those in values take one: the next
// word, or what follows "=" (long) or the letter (short). stop ends the options at the first other word.
func parse(words []string, flags, values string, stop bool) options {
	o := options{set: map[string][]string{}}
	isFlag, isValue := words2set(flags), words2set(values)
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "--":
			o.args = append(o.args, words[i+1:]...)
			return o
		case strings.HasPrefix(w, "--"):
			name, value, has := strings.Cut(w, "=")
			switch {
			case isValue[name] && !has && i+1 < len(words):
				i++
				value = words[i]
				fallthrough
			case isValue[name] && has, isFlag[name]:
				o.set[name] = append(o.set[name], value)
			default:
				o.fail(w)
			}
		case len(w) > 1 && w[0] == '-':
			i += o.short(w, words[i+1:], isFlag, isValue)
		default:
			if stop {
				o.args = append(o.args, words[i:]...)
				return o
			}
			o.args = append(o.args, w)
		}
	}
	return o
}

// short reads one word of single-letter options and returns how many of the next words it took.
func (o *options) short(w string, next []string, isFlag, isValue map[string]bool) int {
	for j := 1; j < len(w); j++ {
		name := "-" + w[j:j+1]
		switch {
		case isFlag[name]:
			o.set[name] = append(o.set[name], "")
		case isValue[name] && j+1 < len(w):
			o.set[name] = append(o.set[name], w[j+1:])
			return 0
		case isValue[name] && len(next) > 0:
			o.set[name] = append(o.set[name], next[0])
			return 1
		default:
			o.fail(name)
			return 0
		}
	}
	return 0
}

func (o *options) fail(name string) {
	if o.bad == "" {
		o.bad = name
	}
}

func (o options) has(names ...string) bool {
	for _, n := range names {
		if len(o.set[n]) > 0 {
			return true
		}
	}
	return false
}

// get returns the last value of the option under any of its names.
func (o options) get(names ...string) string {
	for _, n := range names {
		if v := o.set[n]; len(v) > 0 {
			return v[len(v)-1]
		}
	}
	return ""
}

func words2set(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}
