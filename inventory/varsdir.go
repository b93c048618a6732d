package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// varsFile is one file below group_vars or host_vars.
type varsFile struct {
	source int // index of the inventory source it lies beside
	vars   []setting
}

// varsBeside reads group_vars and host_vars beside every source, in source order.
func (l *loader) varsBeside(inv *Inventory, sources []string) {
	for i, s := range sources {
		st, err := os.Stat(s)
		if s == "-" || err != nil {
			continue
		}
		dir := s
		if !st.IsDir() {
			dir = filepath.Dir(s)
		}
		groups, hosts := listDir(filepath.Join(dir, "group_vars")), listDir(filepath.Join(dir, "host_vars"))
		l.strayVars(filepath.Join(dir, "group_vars"), groups)
		for _, g := range l.g.order {
			inv.groupFiles[g.name] = append(inv.groupFiles[g.name], l.varsFor(filepath.Join(dir, "group_vars"), g.name, groups, i)...)
		}
		for _, h := range l.g.hostOrder {
			inv.hostFiles[h.name] = append(inv.hostFiles[h.name], l.varsFor(filepath.Join(dir, "host_vars"), h.name, hosts, i)...)
		}
	}
}

// strayVars warns of variables for a group of ours that does not exist: a slip that nothing else shows.
func (l *loader) strayVars(dir string, names map[string]bool) {
	for _, n := range sortedKeys(names) {
		name := n
		if ext := filepath.Ext(n); slices.Contains([]string{".yml", ".yaml", ".json"}, ext) {
			name = strings.TrimSuffix(n, ext)
		}
		if strings.HasPrefix(name, "kibo_") && l.g.groups[name] == nil {
			l.warn(place{file: filepath.Join(dir, n)}, "this file is not read: there is no group "+name, meant(name, sortedKeys(l.g.groups)))
		}
	}
}

// listDir lists the names in a directory; nil if there is none.
func listDir(dir string) map[string]bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := make(map[string]bool, len(entries))
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}

// varsFor finds the files of one group or host. As in Ansible the first that exists of NAME, NAME.yml, NAME.yaml and
// NAME.json is taken, and the others are not looked at.
func (l *loader) varsFor(dir, name string, there map[string]bool, source int) []varsFile {
	if len(there) == 0 || strings.ContainsRune(name, filepath.Separator) {
		return nil
	}
	var found []string
	for _, ext := range []string{"", ".yml", ".yaml", ".json"} {
		if !there[name+ext] {
			continue
		}
		path := filepath.Join(dir, name+ext)
		if len(found) > 0 {
			l.warn(place{file: path}, "this file is not read, because "+found[0]+" is there", "join the two")
			continue
		}
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil
	}
	var out []varsFile
	for _, path := range l.varsFiles(found[0]) {
		out = append(out, varsFile{source, l.varsFile(path)})
	}
	return out
}

// varsFiles lists a file, or every file of a directory in name order.
func (l *loader) varsFiles(path string) []string {
	st, err := os.Stat(path)
	if err != nil {
		l.add(place{file: path}, fmt.Sprintf("cannot read variables: %v", unwrapPath(err)), "")
		return nil
	}
	if !st.IsDir() {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		l.add(place{file: path}, fmt.Sprintf("cannot read variables: %v", unwrapPath(err)), "")
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
			continue
		}
		full := filepath.Join(path, name)
		ext := filepath.Ext(name)
		st, err := os.Stat(full) // follows links, as Ansible does
		switch {
		case err != nil:
			l.add(place{file: full}, fmt.Sprintf("cannot read variables: %v", unwrapPath(err)), "")
		case st.IsDir() && ext == "":
			out = append(out, l.varsFiles(full)...)
		case st.Mode().IsRegular() && slices.Contains([]string{"", ".yml", ".yaml", ".json"}, ext):
			out = append(out, full)
		}
	}
	return out
}

// varsFile reads one file of variables, once.
func (l *loader) varsFile(path string) []setting {
	doc, ok := l.files[path]
	if !ok {
		data, err := os.ReadFile(path)
		if err != nil {
			l.add(place{file: path}, fmt.Sprintf("cannot read variables: %v", unwrapPath(err)), "")
		} else {
			doc, _ = l.parse(path, data)
		}
		l.files[path] = doc
	}
	return l.nodesOf(doc)
}
