package inventory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is refused although it is no error to YAML, and what the message says.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                     "this inventory is empty",
		"# nothing\n":                                          "this inventory is empty",
		"---\n":                                                "this inventory is empty",
		"- a\n- b\n":                                           "1:1: an inventory is a mapping of groups",
		"just text\n":                                          "1:1: an inventory is a mapping of groups",
		"[1, 2]\n":                                             "1:1: an inventory is a mapping of groups",
		"g: [a]\n":                                             "1:4: group g must be a mapping",
		"g: text\n":                                            "group g must be a mapping",
		"g: {host: {a: }}\n":                                   "did you mean hosts?",
		"g: {child: {a: }}\n":                                  `group g has no section "child"`,
		"g: {sub: {hosts: {a: }}}\n":                           "groups below a group go under children:",
		"g: {hosts: [a]}\n":                                    "write `a:`",
		"g: {hosts: {5: }}\n":                                  `"5" unquoted is no text in YAML but the number 5, so it names no host`,
		"g: {hosts: {~: }}\n":                                  "nothing (null)",
		"g: {hosts: {2024-01-02: }}\n":                         "a date",
		"g: {hosts: {on: }}\n":                                 `quote it: "on"`,
		"7: {hosts: {a: }}\n":                                  "names no group",
		"g: {vars: {1: x}}\n":                                  "names no variable",
		"g: {hosts: {a: text}}\n":                              "host a must be followed by nothing or by its variables",
		"g: {hosts: {\"a b\": }}\n":                            "is no host name",
		"g: {hosts: {\"a[1:\": }}\n":                           "make no range",
		"g: {hosts: {\"a[3:1]\": }}\n":                         "begins after its end",
		"g: {hosts: {\"a[1:]\": }}\n":                          "has no end",
		"g: {hosts: {\"a[01:1]\": }}\n":                        "same number of digits",
		"g: {hosts: {\"a[1:9:0]\": }}\n":                       "step",
		"g: {hosts: {\"a[ab:cd]\": }}\n":                       "no range of numbers or single letters",
		"g: {hosts: {\"a[0:9999999]\": }}\n":                   "more than 100000",
		"g: {hosts: {\"a[0:999][0:999]\": }}\n":                "more than 100000",
		"g: {hosts: {\"[2001:db8::1]\": }}\n":                  `write "2001:db8::1"`,
		"g: {hosts: {\"a:99999\": }}\n":                        "no port number",
		"g: {hosts: {\"a:b\": }}\n":                            "neither name:port nor an IPv6 address",
		"g: {hosts: {a: }}\nh: {hosts: {\"a:22\": }}\n":        "Ansible ignores the port 22",
		"g: {hosts: {g: }}\n":                                  "host g has the name of a group, on line 1",
		"g: {hosts: {all: }}\n":                                "the name of a group, that Ansible always has",
		"g: {children: {h: {children: {g: }}}}\n":              "group g would be below itself",
		"g: {children: {g: }}\n":                               "group g would be below itself",
		"g: {children: {all: }}\n":                             "group all would be below itself",
		"g: {vars: {ansible_group_priority: high}}\n":          "must be a whole number",
		"a: &a {children: {b: *a}}\n":                          "this anchor contains itself",
		"g: {hosts: {a: {v: !custom x}}}\n":                    "the tag !custom is not known here",
		"g: {hosts: {a: {<<: 5}}}\n":                           "a merge key takes",
		"g: {hosts: {? [a] : }}\n":                             "a key must be plain text",
		"g: {hosts: {a: {x: 1, x: 2}}}\n":                      `"x" is here a second time, first on line 1`,
		"g: {vars: {}}\ng: {hosts: {a: }}\n":                   `2:1: "g" is here a second time, first on line 1`,
		"g:\n  hosts:\n\ta:\n":                                 "3:1: a tab indents this line",
		"g: {hosts: {a: }\n":                                   "not YAML",
		"g: *nowhere\n":                                        "1:4: an alias",
		"h: {hosts: {-a: }}\n":                                 "is no host name",
		"g: {hosts: {a: }}\n---\nh: \n":                        "2:1: a second document",
		"plugin: constructed\ngroups: {}\n":                    "inventory plugin's configuration (constructed)",
		"$ANSIBLE_VAULT;1.1;AES256\n6162\n":                    "encrypted with Ansible Vault",
		"g: \x00\n":                                            "zero bytes",
		"g: {hosts: {a: }}\nh: \xff\n":                         ":2: this line is not UTF-8",
		"kibo_node: {hosts: {a: {s: .inf, kibo_cli: .nan}}}\n": "no finite number",
		`{"_meta": {}, "g": {"hosts": "a"}}`:                   "hosts of group g must be a list",
		`{"_meta": {}, "g": {"hosts": [1]}}`:                   "hosts of group g must be text",
		`{"_meta": {"hostvars": []}, "g": ["a"]}`:              "must be a mapping of hosts",
		`{"_meta": {}, "g": 5}`:                                "group g must be a mapping or a list of hosts",
		`{"_meta": {}, "g": {"children": ["h"]}, "h": {"children": ["g"]}}`:         "group g would be below itself",
		`{"_meta": {"hostvars": {"a": {"ansible_port": 1.5}}}, "kibo_node": ["a"]}`: "1:47: ansible_port",
	} {
		_, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)})
		var problems Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\nwant %q\n got %v", text, want, err)
		}
	}
}

// Several problems are told together, each with its place and line.
func TestProblemsAreCollected(t *testing.T) {
	text := "g:\n  hosts:\n    a: {ansible_port: 022}\n    b[3:1]:\n  var: {}\n"
	_, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)})
	want := `-:4:5: the range [3:1] begins after its end
      4 |     b[3:1]:
-:5:3: group g has no section "var"
      5 |   var: {}
        -> did you mean vars?`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSourcesRefused(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("empty/group_vars/all.yml"), "a: 1\n")
	write(t, path("hosts.conf"), "g: {hosts: {a: }}\n")
	write(t, path("hosts.ini"), "[g]\na\n")
	write(t, path("prog"), "#!/bin/sh\necho\n")
	write(t, path("runs"), "#!/bin/sh\necho\n")
	if err := os.Chmod(path("runs"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path("vault/h.yml"), "g: {hosts: {a: }}\n")
	write(t, path("vault/group_vars/g/secret.yml"), "$ANSIBLE_VAULT;1.2;AES256;x\n6162\n")
	write(t, path("list/h.yml"), "g: {hosts: {a: }}\n")
	write(t, path("list/host_vars/a.yml"), "- 1\n")
	run := func(out string, err error) func(string, ...string) ([]byte, error) {
		return func(string, ...string) ([]byte, error) { return []byte(out), err }
	}
	for _, c := range []struct {
		source string
		o      Options
		want   string
	}{
		{path("none.yml"), Options{}, "no such file"},
		{path("empty"), Options{}, "no inventory in this directory"},
		{path("hosts.conf"), Options{}, "name it .yml"},
		{path("hosts.ini"), Options{}, "INI inventory"},
		{path("prog"), Options{}, "chmod +x"},
		{path("runs"), Options{}, "programs are not run here"},
		{path("runs"), Options{Run: run("", errors.New("exit status 3: no cloud"))}, "exit status 3: no cloud"},
		{path("runs"), Options{Run: run("oops", nil)}, "did not print JSON"},
		{path("runs"), Options{Run: run("", nil)}, "printed nothing"},
		{path("runs"), Options{Run: run(`{"g": ["a"]} more`, nil)}, "did not print JSON"},
		{path("vault/h.yml"), Options{}, "secret.yml:1:1: this file is encrypted"},
		{path("list/h.yml"), Options{}, "a.yml:1:1: a file of variables must be a mapping"},
		{"-", Options{}, "no standard input"},
		{"-", Options{Stdin: failing{}}, "cannot read standard input: broken"},
		{"a,b[1:2],", Options{}, "ranges mean nothing"},
		{"a,", Options{ExtraVars: []string{"novalue"}}, "NAME=VALUE"},
		{"a,", Options{ExtraVars: []string{"./x.yml"}}, "write -e @./x.yml"},
		{"a,", Options{ExtraVars: []string{"@/no/such"}}, "no such file"},
		{"a,", Options{ExtraVars: []string{"[1]"}}, "must be a mapping"},
		{"a,", Options{ExtraVars: []string{"a='x"}}, "not closed"},
		{"a,", Options{ExtraVars: []string{"kibo_gat=off"}}, "did you mean kibo_gate?"},
	} {
		if _, err := Load([]string{c.source}, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.source, c.want, err)
		}
	}
	if _, err := Load(nil, Options{}); err == nil {
		t.Error("no source was accepted")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A plain text file with the executable bit (as on Windows shares) is read, not run.
func TestExecutableYAML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	write(t, path, "kibo_node: {hosts: {a: }}\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	load(t, path)
}

func TestExplain(t *testing.T) {
	t.Chdir("testdata/trees/precedence")
	inv, err := Load([]string{"hosts.yml"}, Options{ExtraVars: []string{"who=extra"}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := inv.Explain("node-b", "who")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprintf("%v: %s %s:%d:%d", s.Value.Value, s.Scope, s.Value.File, s.Value.Line, s.Value.Column))
	}
	want := []string{
		"extra: extra variables -e:0:0",
		"host-file: host_vars of node-b host_vars/node-b.yml:1:6",
		"host-inline: host node-b hosts.yml:8:49",
		"all-file: group_vars of all group_vars/all.yml:1:6",
		"node-inline: group kibo_node hosts.yml:5:19",
		"all-inline: group all hosts.yml:2:15",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := inv.Explain("node-x", "who"); err == nil || !strings.Contains(err.Error(), "did you mean node-") {
		t.Errorf("%v", err)
	}
	if _, err := inv.Explain("node-b", "whom"); err == nil || !strings.Contains(err.Error(), "did you mean who?") {
		t.Errorf("%v", err)
	}
}

func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "group_vars/kibo_node.yml"), "x: 1\n")
	write(t, filepath.Join(dir, "group_vars/all.yml"), "ansible_group_priority: 1\nansible_control_path: /x\n")
	hosts := filepath.Join(dir, "h.yml")
	write(t, hosts, "kibo_nodes: {hosts: {a: {ansible_ssh_prot: 1}}, note: text}\n")
	write(t, filepath.Join(dir, "host_vars/a.yml"), "x: 1\n")
	write(t, filepath.Join(dir, "host_vars/a.json"), "{}\n")
	got := load(t, hosts).Warnings().Error()
	for _, want := range []string{
		"group kibo_nodes gives its hosts no part", "did you mean kibo_node?", `"note" in group kibo_nodes is skipped`,
		"ansible_ssh_prot is no variable", "did you mean ansible_ssh_port?", "a.json: this file is not read",
		"there is no group kibo_node", "works only among a group's vars", "ansible_control_path has no effect here: One connection",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in\n%s", want, got)
		}
	}
}

// The same sources give the same bytes.
func TestDeterministic(t *testing.T) {
	var first string
	for range 5 {
		inv := load(t, "testdata/limits.yml")
		list, err := inv.List(true)
		if err != nil {
			t.Fatal(err)
		}
		s := fmt.Sprint(inv.Hosts(), inv.Groups(), string(list))
		if first == "" {
			first = s
		}
		if s != first {
			t.Fatal("differs")
		}
	}
}

func BenchmarkLoad10000(b *testing.B) {
	text := "kibo_node:\n  vars: {ansible_user: ops, kibo_window_max: 30m}\n  hosts:\n    node-[00001:10000]:\n      ansible_port: 2222\n"
	for b.Loop() {
		inv, err := Load([]string{"-"}, Options{Stdin: io.Reader(strings.NewReader(text))})
		if err != nil || len(inv.Hosts()) != 10000 {
			b.Fatal(err)
		}
	}
}
