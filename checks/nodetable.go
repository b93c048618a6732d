package checks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// column is one word of the heading and where it starts.
type column struct {
	name  string
	start int
}

// requiredColumns must be there, whatever else is.
func requiredColumns() []string { return []string{"NAME", "STATE", "RELEASE"} }

// knownColumns are read where they are there.
func knownColumns() []string {
	return append(requiredColumns(), "INSTANCES", "COMMANDS", "TRANSFERS")
}

// tableCells reads a text table into cells by column name.
func tableCells(s string) ([]map[string]string, error) {
	var head []column
	var cells []map[string]string
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\r\n \t")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if head == nil {
			head = heading(line)
			if err := complete(head); err != nil {
				return nil, err
			}
			continue
		}
		c, err := cut(head, line)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	if head == nil {
		return nil, errors.New("the list is empty, without even a heading")
	}
	return cells, nil
}

func heading(line string) []column {
	var head []column
	at := 0
	for word := range strings.FieldsSeq(line) {
		start := at + strings.Index(line[at:], word)
		head = append(head, column{strings.ToUpper(word), start})
		at = start + len(word)
	}
	return head
}

func complete(head []column) error {
	seen := map[string]int{}
	for _, c := range head {
		seen[c.name]++
	}
	for _, name := range requiredColumns() {
		switch seen[name] {
		case 1:
		case 0:
			return fmt.Errorf("the list has no column %s", name)
		default:
			return fmt.Errorf("the list has column %s twice", name)
		}
	}
	return nil
}

// joined takes words with a single space between them for one heading, as in "LAST SEEN", unless one is a known name.
func joined(words []column) []column {
	var out []column
	for i, c := range words {
		if i > 0 {
			last := &out[len(out)-1]
			if c.start == last.start+len(last.name)+1 && !slices.Contains(knownColumns(), c.name) && !slices.Contains(knownColumns(), last.name) {
				last.name += " " + c.name
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// cut takes a line apart, by the places of the headings and by counting words. A cell may be empty or hold spaces: then only
// the places are right. A wide cell may push the others aside: then only counting is. Where several work they must agree.
func cut(words []column, line string) (map[string]string, error) {
	var found map[string]string
	for _, try := range []func() (map[string]string, bool){
		func() (map[string]string, bool) { return cutByCount(words, line) },
		func() (map[string]string, bool) { return cutByCount(joined(words), line) },
		func() (map[string]string, bool) { return cutByPlace(joined(words), line) },
	} {
		cells, ok := try()
		if !ok {
			continue
		}
		for _, name := range knownColumns() {
			if found != nil && found[name] != cells[name] {
				return nil, fmt.Errorf("cannot tell the columns apart in %q", printable(line))
			}
		}
		if found == nil {
			found = cells
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the line does not fit the headings: %q", printable(line))
	}
	return found, nil
}

func cutByCount(head []column, line string) (map[string]string, bool) {
	field := strings.Fields(line)
	if len(field) != len(head) {
		return nil, false
	}
	cells := map[string]string{}
	for i, c := range head {
		cells[c.name] = field[i]
	}
	return cells, true
}

// cutByPlace needs a gap before every column that is read, and no tabs, whose width nobody knows.
func cutByPlace(head []column, line string) (map[string]string, bool) {
	if strings.Contains(line, "\t") {
		return nil, false
	}
	cells := map[string]string{}
	for i, c := range head {
		end := len(line)
		if i+1 < len(head) {
			end = min(end, head[i+1].start)
		}
		if c.start >= len(line) {
			cells[c.name] = ""
			continue
		}
		if c.start > 0 && line[c.start-1] != ' ' {
			return nil, false
		}
		cells[c.name] = strings.TrimSpace(line[c.start:end])
	}
	return cells, true
}

// jsonCells reads a JSON array of objects, alone or as the only array in an object.
func jsonCells(s string) ([]map[string]string, error) {
	raw := json.RawMessage(s)
	if strings.HasPrefix(s, "{") {
		var outer map[string]json.RawMessage
		if err := json.Unmarshal(raw, &outer); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		raw = nil
		for _, v := range outer {
			if strings.HasPrefix(strings.TrimSpace(string(v)), "[") {
				if raw != nil {
					return nil, errors.New("more than one list in the JSON")
				}
				raw = v
			}
		}
		if raw == nil {
			return nil, errors.New("no list in the JSON")
		}
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("not a JSON list of objects: %w", err)
	}
	var cells []map[string]string
	for _, object := range list {
		c := map[string]string{}
		for key, v := range object {
			key = strings.ToUpper(key)
			if _, twice := c[key]; twice {
				return nil, fmt.Errorf("key %q is there twice", printable(key))
			}
			c[key] = jsonText(v)
		}
		for _, name := range requiredColumns() {
			if _, ok := c[name]; !ok {
				return nil, fmt.Errorf("a node has no %q", strings.ToLower(name))
			}
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// jsonText is a scalar as text; nothing else can be a cell.
func jsonText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	if t := strings.TrimSpace(string(v)); !strings.ContainsAny(t, "{[") {
		return t
	}
	return ""
}
