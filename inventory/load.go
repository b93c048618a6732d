package inventory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Options are what Load gets from outside. The zero value reads files and directories only.
type Options struct {
	ExtraVars []string  // as behind -e: k=v words, a YAML or JSON mapping, or @file
	Stdin     io.Reader // read for the source "-"
	// Run runs an inventory program and returns its standard output. nil: programs are refused. See RunProgram.
	Run func(path string, args ...string) ([]byte, error)
}

// Load reads inventory sources in order, as Ansible's -i: files (YAML or JSON), directories, programs, "-" for the
// output of `ansible-inventory --list`, and host lists with a comma. Later sources win. What cannot be read exactly as
// Ansible would read it is refused. The error is Problems: everything found, each with its place.
func Load(sources []string, o Options) (*Inventory, error) {
	l := &loader{collector: newCollector(), g: newGraph(), options: o, files: map[string]document{}}
	if len(sources) == 0 {
		l.add(place{}, "no inventory was given", "name one with -i")
	}
	for _, s := range sources {
		l.source(s, s)
	}
	inv := &Inventory{
		collector: l.collector, g: l.g, groupFiles: map[string][]varsFile{}, hostFiles: map[string][]varsFile{},
		sources: len(sources),
	}
	inv.extra = l.extraVars(o.ExtraVars)
	l.clashes()
	if len(l.problems) == 0 {
		l.g.reconcile()
		l.varsBeside(inv, sources)
	}
	if len(l.problems) == 0 {
		inv.resolve()
	}
	if err := l.problems.err(); err != nil {
		return nil, err
	}
	return inv, nil
}

type loader struct {
	*collector
	g       *graph
	options Options
	files   map[string]document // vars files already read
}

// Files of an inventory directory that Ansible leaves alone.
var ignored = regexp.MustCompile(`^\.|^host_vars$|^group_vars$|^vars_plugins$|\.(?:pyc|pyo|swp|bak|rpm|md|txt|rst|orig|ini|cfg|retry)$|~$`)

// source reads one source. shown is its name in messages.
func (l *loader) source(path, shown string) {
	if path == "-" {
		l.stdin()
		return
	}
	st, err := os.Stat(path)
	switch {
	case err != nil && strings.Contains(path, ","):
		l.hostList(path)
		return
	case errors.Is(err, os.ErrNotExist):
		l.add(place{file: shown}, "no such file", "")
		return
	case err != nil:
		l.add(place{file: shown}, fmt.Sprintf("cannot read inventory: %v", unwrapPath(err)), "")
		return
	case st.IsDir():
		l.directory(path)
		return
	case !st.Mode().IsRegular() && st.Mode()&os.ModeNamedPipe == 0:
		l.add(place{file: shown}, "neither a file nor a directory", "")
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.add(place{file: shown}, fmt.Sprintf("cannot read inventory: %v", unwrapPath(err)), "")
		return
	}
	if isProgram(data) {
		l.program(path, shown, st.Mode())
		return
	}
	switch filepath.Ext(path) {
	case ".yml", ".yaml", ".json", "":
	default:
		if iniLine.Match(data) {
			l.ini(shown, data)
			return
		}
		if st.Mode()&os.ModeNamedPipe == 0 && !strings.HasPrefix(path, "/dev/") {
			l.add(place{file: shown}, fmt.Sprintf("a file named *%s is no YAML inventory to Ansible", filepath.Ext(path)),
				"name it .yml, .yaml, .json or without extension")
			return
		}
	}
	l.data(shown, data)
}

// data reads an inventory's bytes: YAML, or a listing.
func (l *loader) data(file string, data []byte) {
	doc, ok := l.parse(file, data)
	if !ok {
		return
	}
	if doc.root == nil || scalarKind(deref(doc.root)) == "null" {
		l.add(place{file: file}, "this inventory is empty", "")
		return
	}
	if isListing(doc.root) {
		(&listing{collector: l.collector, g: l.g, file: file}).read(doc.root)
		return
	}
	(&groupFile{collector: l.collector, g: l.g, file: file}).read(doc.root)
}

func (l *loader) stdin() {
	if l.options.Stdin == nil {
		l.add(place{file: "-"}, "there is no standard input to read an inventory from", "")
		return
	}
	data, err := io.ReadAll(l.options.Stdin)
	if err != nil {
		l.add(place{file: "-"}, fmt.Sprintf("cannot read standard input: %v", err), "")
		return
	}
	l.data("-", data)
}

// directory reads the files of a directory in name order, later ones winning.
func (l *loader) directory(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		l.add(place{file: dir}, fmt.Sprintf("cannot read inventory: %v", unwrapPath(err)), "")
		return
	}
	read := 0
	for _, e := range entries {
		if ignored.MatchString(e.Name()) {
			continue
		}
		read++
		path := filepath.Join(dir, e.Name())
		l.source(path, path)
	}
	if read == 0 {
		l.add(place{file: dir}, "no inventory in this directory", "")
	}
}

// hostList reads "a,b,": names on the command line.
func (l *loader) hostList(list string) {
	all := l.g.groups["all"]
	for _, key := range strings.Split(list, ",") {
		if key = strings.TrimSpace(key); key == "" {
			continue
		}
		names, port, err := expandHostKey(key)
		if err == nil && len(names) != 1 {
			err = errors.New("ranges mean nothing in a list of hosts, and Ansible takes them for a name")
		}
		if err != nil {
			l.add(place{file: list}, err.Error(), "")
			continue
		}
		f := groupFile{collector: l.collector, g: l.g, file: list}
		for _, n := range names {
			f.host(all, n, port, nil, place{file: list})
		}
	}
}

// isProgram reports whether a file is to be run rather than read: a script with #! or a binary.
func isProgram(data []byte) bool {
	return strings.HasPrefix(string(data[:min(len(data), 4)]), "#!") || strings.HasPrefix(string(data[:min(len(data), 4)]), "\x7fELF")
}

func (l *loader) program(path, shown string, mode os.FileMode) {
	if mode&0o111 == 0 {
		l.add(place{file: shown}, "this inventory is a program, but it is not executable", "chmod +x "+path)
		return
	}
	if l.options.Run == nil {
		l.add(place{file: shown}, "this inventory is a program, and programs are not run here", fmt.Sprintf(exportHint, shown))
		return
	}
	if !filepath.IsAbs(path) {
		path = "." + string(filepath.Separator) + path // never found by PATH
	}
	doc, ok := l.output(path, shown, "--list")
	if !ok {
		return
	}
	if doc.root == nil {
		l.add(place{file: shown}, "this inventory program printed nothing", "")
		return
	}
	vars := func(host string) (document, bool) { return l.output(path, shown, "--host", host) }
	(&listing{collector: l.collector, g: l.g, file: doc.file, vars: vars}).read(doc.root)
}

// output runs a program and parses the JSON that it prints.
func (l *loader) output(path, shown string, args ...string) (document, bool) {
	file := shown + " " + strings.Join(args, " ")
	data, err := l.options.Run(path, args...)
	if err != nil {
		l.add(place{file: file}, fmt.Sprintf("this inventory program failed: %v", err), "")
		return document{}, false
	}
	data, ok := l.text(file, data)
	if !ok {
		return document{}, false
	}
	l.collector.source(file, data)
	if len(strings.TrimSpace(string(data))) == 0 {
		return document{file: file}, true
	}
	root, err := parseJSON(data)
	if err != nil {
		l.add(place{file: file}, fmt.Sprintf("this inventory program did not print JSON: %v", err), "")
		return document{}, false
	}
	return document{file, root}, l.checkTree(file, root)
}

// clashes refuses a host and a group of the same name: Ansible would give the host's variables to the group.
func (l *loader) clashes() {
	for _, h := range l.g.hostOrder {
		if gr := l.g.groups[h.name]; gr != nil {
			where := "that Ansible always has"
			if gr.at.line > 0 {
				where = fmt.Sprintf("on line %d of %s", gr.at.line, gr.at.file)
			}
			l.add(h.at, fmt.Sprintf("host %s has the name of a group, %s", h.name, where), "rename one of them")
		}
	}
}

func unwrapPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// nodesOf lists the settings of a vars file's root.
func (l *loader) nodesOf(doc document) []setting {
	var out []setting
	if doc.root == nil {
		return nil
	}
	root := deref(doc.root)
	if root.Kind != yaml.MappingNode {
		if scalarKind(root) != "null" {
			l.add(at(doc.file, root), "a file of variables must be a mapping", "")
		}
		return nil
	}
	for _, p := range l.pairs(doc.file, root) {
		if name, ok := l.name(doc.file, "variable", p.key); ok {
			out = append(out, setting{name, p.value, at(doc.file, p.value)})
		}
	}
	return slices.Clip(out)
}
