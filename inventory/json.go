package inventory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// looksJSON reports whether a document starts as JSON does. Ansible, too, tries JSON before YAML.
func looksJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && (t[0] == '{' || t[0] == '[')
}

// parseJSON reads one JSON document into the same nodes as YAML, so that everything after knows one form only.
// Text is marked as quoted, so that "no" stays text.
func parseJSON(data []byte) (*yaml.Node, error) {
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	for i, b := range data {
		if b == '\n' {
			r.lines = append(r.lines, int64(i))
		}
	}
	n, err := r.value()
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more follows after the document's end")
	}
	return n, nil
}

type jsonReader struct {
	dec   *json.Decoder
	lines []int64 // offsets of line ends
	deep  int
}

// node makes a node that ends at the reader's offset; length is that of its text, to find where it starts.
func (r *jsonReader) node(kind yaml.Kind, tag, text string, length int) *yaml.Node {
	off := max(r.dec.InputOffset()-int64(length), 0)
	line := sort.Search(len(r.lines), func(i int) bool { return r.lines[i] >= off })
	start := int64(-1)
	if line > 0 {
		start = r.lines[line-1]
	}
	n := &yaml.Node{Kind: kind, Tag: tag, Value: text, Line: line + 1, Column: int(off - start)}
	if tag == "!!str" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func (r *jsonReader) value() (*yaml.Node, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case json.Delim:
		return r.composite(v)
	case string:
		return r.node(yaml.ScalarNode, "!!str", v, len(v)+2), nil
	case json.Number:
		return r.number(v), nil
	case bool:
		text := fmt.Sprint(v)
		return r.node(yaml.ScalarNode, "!!bool", text, len(text)), nil
	default:
		return r.node(yaml.ScalarNode, "!!null", "null", 4), nil
	}
}

func (r *jsonReader) number(v json.Number) *yaml.Node {
	tag := "!!int" // of any size
	if strings.ContainsAny(v.String(), ".eE") {
		tag = "!!float"
	}
	n := r.node(yaml.ScalarNode, tag, v.String(), len(v))
	n.Style = yaml.TaggedStyle // JSON's 1e3 is a number, whatever YAML would say
	return n
}

func (r *jsonReader) composite(d json.Delim) (*yaml.Node, error) {
	const deepest = 1000
	if r.deep++; r.deep > deepest {
		return nil, fmt.Errorf("nested more than %d levels deep", deepest)
	}
	defer func() { r.deep-- }()
	n := r.node(yaml.SequenceNode, "!!seq", "", 1)
	if d == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	n.Style = yaml.FlowStyle
	for r.dec.More() {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, v)
	}
	_, err := r.dec.Token()
	return n, err
}
