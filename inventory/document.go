package inventory

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// document is one file with its root node; nil root: empty.
type document struct {
	file string
	root *yaml.Node
}

// A line number that the YAML library puts into its message.
var (
	yamlLine = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	// An alias without its anchor; the name may be a password that begins with a star.
	yamlAlias = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// An INI section header, or a host line with variables.
var iniLine = regexp.MustCompile(`(?m)^\s*(\[[\w.:-]+\]\s*([#;].*)?\r?$|[^\s:#'"{\[-]\S*\s+(ansible|kibo)_\w+\s*=)`)

const exportHint = "let Ansible evaluate it: ansible-inventory -i %s --list | kibo-rollout … -i -"

// parse reads one YAML or JSON document, or records why not. ok is false after a problem.
func (c *collector) parse(file string, data []byte) (doc document, ok bool) {
	doc.file = file
	data, ok = c.text(file, data)
	if !ok {
		return doc, false
	}
	c.source(file, data)
	if looksJSON(data) {
		root, err := parseJSON(data)
		if err == nil {
			doc.root = root
			return doc, true
		}
		if strings.HasSuffix(file, ".json") {
			c.add(place{file: file}, fmt.Sprintf("not JSON: %v", err), "")
			return doc, false
		}
	}
	root, ok := c.parseYAML(file, data)
	if !ok || root == nil {
		return doc, ok
	}
	doc.root = root
	return doc, c.checkTree(file, root)
}

// text refuses what is not UTF-8 and takes a byte-order mark away.
func (c *collector) text(file string, data []byte) ([]byte, bool) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	whole := place{file: file}
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		c.add(whole, "this file is UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 "+file)
		return nil, false
	case bytes.HasPrefix(data, []byte("$ANSIBLE_VAULT;")):
		c.add(place{file, 1, 1}, "this file is encrypted with Ansible Vault, which is not read here",
			"let Ansible decrypt it: ansible-inventory --ask-vault-pass … --list | kibo-rollout … -i -")
		return nil, false
	case bytes.IndexByte(data, 0) >= 0:
		c.add(whole, "this file holds zero bytes: it is no UTF-8 text", "")
		return nil, false
	case !utf8.Valid(data):
		line := 1
		for rest := data; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			if r == utf8.RuneError && n == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			rest = rest[n:]
		}
		c.add(place{file: file, line: line}, "this line is not UTF-8", "save the file as UTF-8")
		return nil, false
	}
	return data, true
}

// parseYAML returns the root of the only document, or nil for an empty one.
func (c *collector) parseYAML(file string, data []byte) (*yaml.Node, bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := decodeYAML(dec, &doc)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	if err != nil {
		c.syntax(file, data, err)
		return nil, false
	}
	var second yaml.Node
	if err := decodeYAML(dec, &second); !errors.Is(err, io.EOF) {
		if err != nil {
			c.syntax(file, data, err)
			return nil, false
		}
		c.add(place{file, max(second.Line, 1), max(second.Column, 1)},
			"a second document starts here, and Ansible refuses a file with more than one", "join the documents or make two files")
		return nil, false
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, true
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && iniLine.Match(data) {
		c.ini(file, data)
		return nil, false
	}
	return root, true
}

// decodeYAML turns the library's rare panics on broken input into errors.
func decodeYAML(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(n)
}

// syntax records a YAML syntax error, and says so if the file is of another kind altogether.
func (c *collector) syntax(file string, data []byte, err error) {
	if iniLine.Match(data) {
		c.ini(file, data)
		return
	}
	at, what := place{file: file}, err.Error()
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		at.line, _ = strconv.Atoi(m[1])
		what = m[2]
	}
	// The library counts the line on which it noticed; a tab is better shown where it is.
	lines := strings.Split(string(data), "\n")
	for i := max(at.line-3, 0); i < min(at.line+2, len(lines)); i++ {
		indent := lines[i][:len(lines[i])-len(strings.TrimLeft(lines[i], " \t"))]
		if k := strings.IndexByte(indent, '\t'); k >= 0 {
			c.add(place{file, i + 1, k + 1}, "a tab indents this line, and YAML allows only spaces there", "use spaces")
			return
		}
	}
	if m := yamlAlias.FindStringSubmatch(what); m != nil {
		for i, l := range lines {
			if k := strings.Index(l, "*"+m[1]); k >= 0 {
				at.line, at.column = i+1, k+1
				break
			}
		}
		c.add(at, "an alias, which is what a star begins in YAML, to an anchor that is not there", "quote text that begins with a star")
		return
	}
	c.add(at, "not YAML: "+what, "")
}

func (c *collector) ini(file string, data []byte) {
	loc := iniLine.FindIndex(data)
	line := 1 + bytes.Count(data[:loc[0]], []byte("\n"))
	for loc[0] < len(data) && (data[loc[0]] == '\n' || data[loc[0]] == '\r') {
		loc[0]++
		line++
	}
	c.add(place{file, line, 1}, "this is an INI inventory, and only YAML and JSON are read here",
		fmt.Sprintf(exportHint, file)+"; or convert it once: ansible-inventory -i "+file+" --list --yaml")
}

// checkTree refuses duplicate keys, anchors that contain themselves and trees too large to be an inventory.
func (c *collector) checkTree(file string, root *yaml.Node) bool {
	before := len(c.problems)
	budget := 2_000_000
	c.checkNode(file, root, nil, &budget)
	if budget <= 0 {
		c.add(place{file: file}, "anchors expand to more than 2 million entries", "write the values out")
	}
	return len(c.problems) == before
}

func (c *collector) checkNode(file string, n *yaml.Node, open []*yaml.Node, budget *int) {
	if *budget--; *budget <= 0 {
		return
	}
	for _, o := range open {
		if o == n {
			c.add(at(file, n), "this anchor contains itself", "")
			*budget = 1 // the walk ends here; the tree is refused
			return
		}
	}
	if n.Kind == yaml.AliasNode {
		c.checkNode(file, n.Alias, open, budget)
		return
	}
	if n.Anchor != "" {
		open = append(open[:len(open):len(open)], n)
	}
	if n.Kind == yaml.MappingNode {
		c.checkKeys(file, n)
	}
	for _, child := range n.Content {
		c.checkNode(file, child, open, budget)
	}
}

// checkKeys finds the same key twice. Ansible would warn and take the last; which one was meant nobody can know.
func (c *collector) checkKeys(file string, n *yaml.Node) {
	first := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			if k.Kind != yaml.AliasNode {
				c.add(at(file, k), "a key must be plain text", "")
			}
			continue
		}
		if isMerge(k) {
			continue
		}
		if f := first[k.Value]; f != nil {
			c.add(at(file, k), fmt.Sprintf("%q is here a second time, first on line %d", k.Value, f.Line),
				"keep one; Ansible takes the last with a warning")
			continue
		}
		first[k.Value] = k
	}
}

func at(file string, n *yaml.Node) place { return place{file, n.Line, n.Column} }

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}
