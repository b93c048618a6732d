package inventory

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// accepted are the case files that Ansible reads and that must come out exactly as ansible-inventory has them.
func TestCasesLikeAnsible(t *testing.T) {
	for _, file := range []string{
		"inv-same-host-two-groups/inventory", "inv-group-depth/inventory", "inv-empty-hosts/inventory", "inv-ranges/inventory",
		"inv-ranges/inventory-port-suffix", "inv-ipv6/inventory", "inv-merge-anchor/inventory", "inv-tab-bom-crlf/bom-crlf",
		"inv-tab-bom-crlf/utf8", "inv-no-extension/hosts",
	} {
		t.Run(file, func(t *testing.T) {
			path := "testdata/cases/" + file + ".yml"
			if strings.HasSuffix(file, "/hosts") {
				path = "testdata/cases/" + file
			}
			inv, err := Load([]string{path}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("testdata/cases/" + file + ".ansible.json")
			if err != nil {
				t.Fatal(err)
			}
			got, err := inv.List(true)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(decoded(t, want), decoded(t, got)); d != "" {
				t.Errorf("not as ansible-inventory has it (-ansible +ours):\n%s", d)
			}
		})
	}
}

// decoded is a listing as values; groups that say nothing are left out, since versions of Ansible differ in that.
func decoded(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 1000 and 1000.0 are not the same to Ansible
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	if meta, ok := out["_meta"].(map[string]any); ok {
		delete(meta, "profile") // which newer versions of Ansible add
	}
	return plainMarks(out).(map[string]any)
}

// plainMarks takes ansible-inventory's marks off literal text.
func plainMarks(v any) any {
	switch t := v.(type) {
	case []any:
		for i := range t {
			t[i] = plainMarks(t[i])
		}
	case map[string]any:
		if s, ok := t[unsafeMark]; ok && len(t) == 1 {
			return s
		}
		for k := range t {
			t[k] = plainMarks(t[k])
		}
	}
	return v
}

// Every file that must be refused, with what the message must hold: the place, what is wrong, what to do.
func TestCasesRefused(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string
		not  []string
	}{
		{"inv-octal-port/inventory.yml", []string{"inventory.yml:3:19: ansible_port: 0022", "YAML reads 0022 as 18", "inventory.yml:8:58", "02222", "1170", "inventory.yml:10", "0899"},
			[]string{"inventory.yml:9"}},
		{"inv-norway/inventory.yml", []string{`:3:5: "no" unquoted`, "the boolean false", `quote it: "no"`, `"on" unquoted`, `:9:5`}, []string{"se:"}},
		{"inv-version-float/inventory.yml", []string{":3:26", "0.10 unquoted is the number 0.1", `write "0.10"`, ":4:28", "1e3 unquoted"}, nil},
		{"inv-jinja-host/inventory.yml", []string{":7:23: ansible_host: this value is a template", "hosts node-a, node-b", ":8:23: ansible_user", "-e ansible_host=VALUE"}, nil},
		{"inv-duplicate-host-key/inventory.yml", []string{":10:9", `"node-a" is here a second time, first on line 8`}, nil},
		{"inv-host-list/inventory.yml", []string{":7:5", "hosts of group kibo_nodes must be a map", "write `node-a:`"}, nil},
		{"inv-multidoc/inventory.yml", []string{":7:1", "second document"}, nil},
		{"inv-legacy-ssh-vars/inventory.yml", []string{":12:29", "ansible_ssh_host and ansible_host differ", "host node-b", "Ansible would take ansible_ssh_host"}, []string{"hunter2", "node-a"}},
		{"inv-connection-local/inventory.yml", []string{"host localhost", "the machine you sit at", `"docker" is not SSH`, "host web1", "ansible_become_user: deploy is not possible", "host node-c"},
			[]string{"node-b"}},
		{"inv-dynamic-plugin/inventory.yml", []string{":1:1", "amazon.aws.aws_ec2", "ansible-inventory -i testdata/cases/inv-dynamic-plugin/inventory.yml --list"}, nil},
		{"inv-tab-bom-crlf/tab.yml", []string{"tab.yml:5:1", "a tab", "<TAB>"}, nil},
		{"inv-tab-bom-crlf/nbsp.yml", []string{":5:9", "U+00A0"}, nil},
		{"inv-tab-bom-crlf/utf16.yml", []string{"UTF-16", "iconv"}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			_, err := Load([]string{"testdata/cases/" + c.file}, Options{})
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("message lacks %q", w)
				}
			}
			for _, n := range c.not {
				if strings.Contains(err.Error(), n) {
					t.Errorf("message must not hold %q", n)
				}
			}
			if t.Failed() {
				t.Log("\n" + err.Error())
			}
		})
	}
}

// An INI file without extension is refused as what it is.
func TestINIRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sections": "# hosts\nnode-a ansible_host=192.0.2.1\n\n[kibo_node]\nnode-a\n",
		"short":    "[kibo_node]\nnode-a\nnode-b\n",
		"vars":     "[kibo_node:vars]\nansible_user=ops\n",
	} {
		path := filepath.Join(dir, name)
		write(t, path, text)
		_, err := Load([]string{path}, Options{})
		if err == nil || !strings.Contains(err.Error(), "INI inventory") || !strings.Contains(err.Error(), "ansible-inventory -i "+path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLegacySpellingsAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hosts.yml")
	write(t, path, "kibo_node:\n  hosts:\n    node-a:\n      ansible_ssh_host: 192.0.2.11\n      ansible_ssh_port: 2222\n      ansible_ssh_user: ops\n      ansible_sudo_pass: hunter2\n")
	inv, err := Load([]string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := Login{Address: "192.0.2.11", Port: 2222, User: "ops", BecomePass: "hunter2"}
	if d := cmp.Diff(want, inv.Hosts()[0].Login); d != "" {
		t.Error(d)
	}
}

func TestCaseLimitTypo(t *testing.T) {
	inv := load(t, "testdata/cases/cli-limit-typo/inventory.yml")
	for limit, want := range map[string]string{
		"node-a,node-bb,node-c": `"node-bb" matches no host or group`,
		"kibo_node":             "did you mean kibo_nodes?",
		"node-[x-z]":            "matches no host",
		"node-a:!node-a":        "leaves no host",
		"":                      "is empty",
		"  ":                    "is empty",
		",":                     "is empty",
		"!kibo_nodes":           "leaves no host",
		"node-[0-3]":            "write ~node-[0-3]",
	} {
		if got, err := inv.Select(limit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d hosts, %v; want an error with %q", limit, len(got), err, want)
		}
	}
	empty := load(t, "testdata/cases/inv-empty-hosts/inventory.yml")
	if _, err := empty.Select("retired"); err == nil || !strings.Contains(err.Error(), "group without hosts") {
		t.Errorf("retired: %v", err)
	}
}

func load(t *testing.T, sources ...string) *Inventory {
	t.Helper()
	inv, err := Load(sources, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
