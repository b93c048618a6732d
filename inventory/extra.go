package inventory

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// extraVars reads what stands behind -e: words of k=v, a YAML or JSON mapping, or @file. Later ones win.
func (l *loader) extraVars(args []string) []setting {
	var out []setting
	for _, a := range args {
		switch {
		case strings.TrimSpace(a) == "":
		case a[0] == '@':
			data, err := os.ReadFile(a[1:])
			if err != nil {
				l.add(place{file: "-e " + a}, fmt.Sprintf("cannot read variables: %v", unwrapPath(err)), "")
				continue
			}
			out = append(out, l.extraDoc(a[1:], data)...)
		case a[0] == '/' || a[0] == '.':
			l.add(place{file: "-e"}, fmt.Sprintf("%q looks like a file", a), "write -e @"+a)
		case a[0] == '{' || a[0] == '[':
			out = append(out, l.extraDoc("-e", []byte(a))...)
		default:
			out = append(out, l.extraWords(a)...)
		}
	}
	return out
}

func (l *loader) extraDoc(file string, data []byte) []setting {
	doc, ok := l.parse(file, data)
	if !ok {
		return nil
	}
	if doc.root == nil || deref(doc.root).Kind != yaml.MappingNode {
		l.add(place{file: file}, "extra variables must be a mapping", "")
		return nil
	}
	return l.nodesOf(doc)
}

// extraWords reads k=v words; every value is text, as with Ansible.
func (l *loader) extraWords(arg string) []setting {
	words, err := splitWords(arg)
	if err != nil {
		l.add(place{file: "-e"}, fmt.Sprintf("cannot split the extra variables into words: %v", err), "")
		return nil
	}
	var out []setting
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" {
			l.add(place{file: "-e"}, "an extra variable must be NAME=VALUE", "")
			continue
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: v}
		out = append(out, setting{k, n, place{file: "-e"}})
	}
	return out
}

// splitWords splits text into words as a POSIX shell does with quotes and backslashes, and nothing else of a shell.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		switch {
		case quote == '\'' && r != '\'', quote == '"' && r != '"' && r != '\\':
			word.WriteRune(r)
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\':
			if i+1 == len(rs) {
				return nil, errors.New("it ends with a backslash")
			}
			i++
			if quote == '"' && rs[i] != '"' && rs[i] != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(rs[i])
			in = true
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
