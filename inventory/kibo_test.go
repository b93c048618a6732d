package inventory

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kibotos/kibo-rollout/internal/release"
)

const fullInventory = `
all:
  vars:
    fleet_lock_url: https://lock.example.net/
    fleet_lock_group: kibo
    kibo_window_max: 1800
  children:
    kibo_ctrl:
      hosts:
        ctrl1: {ansible_host: 192.0.2.10}
    kibo_node:
      vars:
        kibo_timeouts: {ready: 10m, settle: 3600, stop: "90"}
        kibo_hooks: {suspend-writes: [/opt/site/suspend, 5], reopen: "/opt/reopen 'all of it'"}
        kibo_cli: podman exec kibo-ctrl kibo
        kibo_cli_on: ctrl1
      hosts:
        node-[a:b]: {kibo_next_config: files/next.toml}
    kibo_gw:
      hosts:
        gw1:
          kibo_commands: {gw: {stop: [podman, stop, gw], start: podman start gw}}
          kibo_gate: off
          kibo_gate_reason: container
    box:
      hosts:
        both:
          kibo_parts: [gw, ctrl]
          kibo_node_name: n1
          kibo_config: {ctrl: /srv/ctrl.toml}
          kibo_stage_dir: /srv/stage
          kibo_vmm_units: "vm-*.service"
`

func TestKiboVariables(t *testing.T) {
	inv := loadText(t, strings.Replace(fullInventory, "kibo_gate: off", `kibo_gate: "off"`, 1))
	configs := func(p release.Part, path string) map[release.Part]string {
		out := map[release.Part]string{}
		for _, q := range release.Parts() {
			out[q] = q.Config()
		}
		if p != "" {
			out[p] = path
		}
		return out
	}
	base := func(name string, f func(*Kibo)) Kibo {
		k := Kibo{
			NodeName: name, CLI: []string{"kibo"}, CLIOn: "ctrl", StageDir: "/var/lib/kibo-rollout/stage", StateDir: "/var/lib/kibo-rollout",
			Config: configs("", ""), Gate: "managed", WindowMax: 30 * time.Minute, VMMUnits: "kibotos-vmm-*.service",
			FleetLockURL: "https://lock.example.net/", FleetLockGroup: "kibo",
		}
		f(&k)
		return k
	}
	node := func(k *Kibo) {
		k.Timeouts = map[string]time.Duration{"ready": 10 * time.Minute, "settle": time.Hour, "stop": 90 * time.Second}
		k.Hooks = map[string][]string{"suspend-writes": {"/opt/site/suspend", "5"}, "reopen": {"/opt/reopen", "all of it"}}
		k.CLI, k.CLIOn = []string{"podman", "exec", "kibo-ctrl", "kibo"}, "ctrl1"
		k.NextConfig = "files/next.toml"
	}
	want := map[string]Kibo{
		"ctrl1":  base("ctrl1", func(*Kibo) {}),
		"node-a": base("node-a", node), "node-b": base("node-b", node),
		"gw1": base("gw1", func(k *Kibo) {
			k.Gate, k.OffReason = "off", "container"
			k.Commands = map[release.Part]map[string][]string{release.GW: {"stop": {"podman", "stop", "gw"}, "start": {"podman", "start", "gw"}}}
		}),
		"both": base("n1", func(k *Kibo) {
			k.Config = configs(release.Ctrl, "/srv/ctrl.toml")
			k.StageDir, k.VMMUnits = "/srv/stage", "vm-*.service"
		}),
	}
	for _, h := range inv.Hosts() {
		if d := cmp.Diff(want[h.Name], h.Kibo); d != "" {
			t.Errorf("%s: %s", h.Name, d)
		}
	}
	both, _ := inv.Host("both")
	if d := cmp.Diff([]release.Part{release.Ctrl, release.GW}, both.Parts); d != "" {
		t.Errorf("parts of both: %s", d)
	}
}

func TestDefaults(t *testing.T) {
	inv := loadText(t, "kibo_node: {hosts: {node-a: }}\n")
	h, _ := inv.Host("node-a")
	if d := cmp.Diff(Login{Address: "node-a"}, h.Login); d != "" {
		t.Error(d)
	}
	if h.Kibo.Gate != "managed" || h.Kibo.WindowMax != time.Hour || h.Kibo.Config[release.Node] != "/etc/kibotos/node/config.toml" {
		t.Errorf("%+v", h.Kibo)
	}
}

// Every wrong value is refused with its place and with what would be right; proves that nothing is guessed.
func TestVariablesRefused(t *testing.T) {
	for vars, want := range map[string]string{
		"kibo_stage_dirs: /x":                        "3:20: there is no variable kibo_stage_dirs\n",
		"kibo_stagedir: /x":                          "did you mean kibo_stage_dir?",
		"kibo_nothing_like_it: 1":                    "there is no variable kibo_nothing_like_it",
		"kibo_stage_dir: tmp/x":                      "no absolute path",
		"kibo_stage_dir: /x/../y":                    "no absolute path",
		"kibo_stage_dir: /":                          "no absolute path",
		"kibo_node_name: 0.10":                       `0.10 unquoted is the number 0.1`,
		"kibo_node_name: 1e3":                        "1e3 unquoted is text to some readers",
		"kibo_node_name: -h":                         "no node name",
		"ansible_host: -oProxyCommand":               "neither a name nor an address",
		"ansible_host: 192.0.2.1:22":                 "a port goes into ansible_port",
		"kibo_node_name: no":                         "no unquoted is the boolean false",
		"kibo_node_name: 2024-01-02":                 "must be text",
		"kibo_node_name: ":                           "has no value",
		`kibo_node_name: ""`:                         "is empty",
		`kibo_node_name: "a\u200bb"`:                 "U+200B",
		"kibo_gate: off":                             "off unquoted is the boolean false",
		"kibo_gate: \"off\"":                         "needs a reason",
		"kibo_gate: manged":                          "did you mean managed?",
		"kibo_window_max: 1:30":                      "YAML reads 1:30 as 90",
		"kibo_window_max: 1 hour":                    "no duration",
		"kibo_window_max: 0":                         "not between",
		"kibo_window_max: -5m":                       "no time to wait",
		"kibo_timeouts: {redy: 5m}":                  "did you mean ready?",
		"kibo_timeouts: [ready]":                     "must be a mapping",
		"kibo_commands: {nod: {stop: x}}":            "did you mean node?",
		"kibo_commands: {node: {stopp: x}}":          "did you mean stop?",
		"kibo_commands: {node: {stop: []}}":          "empty command",
		"kibo_commands: {node: {stop: [a, no]}}":     "no unquoted is the boolean false",
		"kibo_commands: {node: {stop: 'a \"b'}}":     "not closed",
		"kibo_hooks: {Big: x}":                       "small letters",
		"kibo_parts: [nod]":                          `there is no part "nod"`,
		"kibo_parts: '{{ x }}'":                      "is a template",
		"kibo_parts: 5":                              "must be a list of parts",
		"kibo_cli_on: nowhere":                       `there is no host "nowhere"`,
		"fleet_lock_url: lock.example.net":           "no http or https URL",
		"fleet_lock_group: a_b":                      "letters, digits, dots",
		"kibo_vmm_units: vm-*":                       "no name pattern of services",
		"ansible_port: 0022":                         "YAML reads 0022 as 18",
		"ansible_port: \"0022\"":                     "no plain decimal number",
		"ansible_port: 70000":                        "not between 1 and 65535",
		"ansible_port: ssh":                          "no plain decimal number",
		"ansible_port: yes":                          "must be a number",
		"ansible_port: 22.0":                         "no plain decimal number",
		"ansible_host: 10.10":                        "unquoted is the number 10.1",
		"ansible_host: a b":                          "neither a name nor an address",
		"ansible_user: 0123":                         `write "0123"`,
		"ansible_user: '{{ x }}'":                    "is a template",
		"ansible_user: !vault abc":                   "encrypted with Ansible Vault",
		"kibo_cli: [a, '{{ x }}']":                   "is a template",
		"kibo_commands: {gw: {stop: [!vault abc]}}":  "encrypted",
		"ansible_become: maybe":                      "yes or no",
		"ansible_become_method: su":                  "su is not possible here",
		"ansible_become_exe: /opt/sudo":              "not possible here",
		"ansible_become_flags: -E":                   "not possible here",
		"ansible_ssh_executable: /opt/ssh":           "not possible here",
		"ansible_ssh_pkcs11_provider: /lib/x.so":     "not possible here",
		"ansible_connection: local":                  "the machine you sit at",
		"ansible_ssh_common_args: \"-o 'x\"":         "not closed",
		"{ansible_user: a, ansible_ssh_user: b}":     "two spellings of one variable",
		"{ansible_password: a, ansible_ssh_pass: b}": "two spellings of one variable",
	} {
		body := "      " + vars + "\n"
		if strings.HasPrefix(vars, "{") {
			body = "      <<: " + vars + "\n"
		}
		_, err := Load([]string{"-"}, Options{Stdin: strings.NewReader("kibo_node:\n  hosts:\n    node-a:\n" + body)})
		if err == nil {
			t.Errorf("%s: was accepted", vars)
			continue
		}
		want = strings.TrimPrefix(want, "3:20: ")
		if !strings.Contains(err.Error(), strings.TrimSuffix(want, "\n")) || !strings.Contains(err.Error(), "-:4:") {
			t.Errorf("%s: want %q with a place, got\n%v", vars, want, err)
		}
	}
}

// A secret never gets into a message, a listing or an explanation, not even when it is what is wrong.
func TestSecretsAreNotShown(t *testing.T) {
	for _, text := range []string{
		"kibo_node: {hosts: {node-a: {ansible_password: 123456789}}}\n",
		"kibo_node: {hosts: {node-a: {ansible_password: *hunter2}}}\n",
		"kibo_node: {hosts: {node-a: {ansible_password: 1e9, kibo_x: hunter2}}}\n",
		"kibo_node: {hosts: {node-a: {ansible_port: 022, ansible_become_pass: hunter2}}}\n",
		"kibo_node: {hosts: {node-a: {ansible_sudo_pass: hunter2, ansible_become_password: hunter3}}}\n",
		"kibo_node:\n  hosts:\n    node-a: {ansible_ssh_pass: 'hunter2 \"', ansible_user: [}\n",
	} {
		_, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)})
		if err == nil {
			t.Errorf("accepted: %s", text)
		} else if s := err.Error(); strings.Contains(s, "hunter") || strings.Contains(s, "123456789") || strings.Contains(s, "1e9") {
			t.Errorf("shows a secret:\n%s", s)
		}
	}
	inv := loadText(t, "kibo_node: {hosts: {node-a: {ansible_password: hunter2, api_token: hunter3}}}\n")
	list, err := inv.List(false)
	if err != nil || strings.Contains(string(list), "hunter") {
		t.Errorf("%v\n%s", err, list)
	}
	why, err := inv.Explain("node-a", "")
	if err != nil || len(why) != 2 || why[0].Value.Value != "(not shown)" {
		t.Errorf("%v %v", why, err)
	}
	for _, v := range Variables() {
		for _, n := range v.spellings() {
			if v.Secret && !Secret(n) {
				t.Errorf("%s is secret, and its lines would be shown", n)
			}
		}
	}
}

func TestOneMachineTwoNames(t *testing.T) {
	for text, want := range map[string]string{
		"kibo_node: {hosts: {a: {ansible_host: 192.0.2.1}, b: {ansible_host: 192.0.2.1}}}":                                           "a and b are one machine under two names (192.0.2.1:22)",
		"kibo_node: {hosts: {a: {ansible_host: 192.0.2.1}, b: {ansible_host: 192.0.2.1, ansible_port: 22}}}":                         "one machine",
		"kibo_node: {hosts: {a: {ansible_host: '2001:db8::1'}, b: {ansible_host: '2001:0DB8:0:0::1'}}}":                              "one machine under two names ([2001:db8::1]:22)",
		"kibo_node: {hosts: {a: {ansible_host: Box.example.}, box.example: }}":                                                       "one machine",
		"kibo_node: {hosts: {a: {ansible_host: '::ffff:192.0.2.1'}, b: {ansible_host: 192.0.2.1}}}":                                  "one machine",
		"kibo_node: {hosts: {a: {kibo_node_name: n}, b: {kibo_node_name: n}}}":                                                       "one node name at ctrl (n)",
		"kibo_node: {hosts: {a: {ansible_host: h, ansible_port: 1}, b: {ansible_host: h, ansible_port: 2}}}":                         "",
		"kibo_node: {hosts: {a: {ansible_host: h}}}\nweb: {hosts: {other: {ansible_host: h}}}":                                       "",
		"kibo_node: {hosts: {a: {ansible_host: 'fe80::1%eth0'}, b: {ansible_host: 'fe80::1%eth1'}}}\nkibo_ctrl: {hosts: {c: , d: }}": "",
	} {
		_, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text + "\n")})
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

// A host that runs no part is nobody's business: it may be local, templated, a container. It cannot be dialled by slip.
func TestHostsWithoutPart(t *testing.T) {
	inv := loadText(t, "kibo_node: {hosts: {node-a: }}\nall: {hosts: {localhost: {ansible_connection: local}, web: {ansible_host: '{{ x }}'}, db: }}\n")
	for _, h := range inv.Hosts() {
		broken := h.Name == "localhost" || h.Name == "web"
		if (h.Problem != nil) != broken || (h.Login.Address == "") != broken {
			t.Errorf("%s: problem %v, address %q", h.Name, h.Problem, h.Login.Address)
		}
	}
}

func loadText(t *testing.T, text string) *Inventory {
	t.Helper()
	inv, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)})
	if err != nil {
		t.Fatal(err)
	}
	return inv
}
