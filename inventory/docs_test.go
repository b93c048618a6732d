package inventory

import (
	"strings"
	"testing"
)

// The table is whole: every row has a name of its own, a type, a default and a meaning, and everything but what has no
// effect is read.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variables() {
		for _, n := range v.spellings() {
			if seen[n] {
				t.Errorf("%s is in the table twice", n)
			}
			seen[n] = true
		}
		if v.Kind == "" || v.Standing == "" || v.Doc == "" || v.Default == "" {
			t.Errorf("%s: kind %q, standing %q, doc %q, default %q", v.Name, v.Kind, v.Standing, v.Doc, v.Default)
		}
		if (v.set == nil) != (v.Standing == NoEffect) {
			t.Errorf("%s: %s, but set is there: %v", v.Name, v.Standing, v.set != nil)
		}
		if strings.HasPrefix(v.Name, "kibo_") && v.Example == "" {
			t.Errorf("%s has no example", v.Name)
		}
		if v.Kind == Mapping && v.schema == nil {
			t.Errorf("%s has no schema", v.Name)
		}
	}
	// Ansible's documentation names these; none may be ignored in silence.
	for _, n := range strings.Fields(`ansible_host ansible_port ansible_user ansible_ssh_private_key_file ansible_private_key_file
		ansible_ssh_common_args ansible_ssh_extra_args ansible_ssh_executable ansible_ssh_timeout ansible_host_key_checking
		ansible_ssh_host_key_checking ansible_ssh_retries ansible_connection ansible_become ansible_become_user ansible_become_method
		ansible_become_password ansible_become_exe ansible_become_flags ansible_password ansible_control_path ansible_remote_tmp`) {
		if !seen[n] {
			t.Errorf("%s is not in the table", n)
		}
	}
}

// Every example in the table is itself accepted.
func TestExamples(t *testing.T) {
	for _, v := range Variables() {
		if v.Example == "" || v.Name == "kibo_cli_on" {
			continue
		}
		text := "kibo_node:\n  hosts:\n    node-a:\n      " + v.Name + ": " + v.Example + "\n"
		if _, err := Load([]string{"-"}, Options{Stdin: strings.NewReader(text)}); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// What is not built yet is refused by name and place, for hosts of the fleet only; the default is not.
func TestNotBuilt(t *testing.T) {
	rows := 0
	for _, v := range Variables() {
		if len(v.NotBuilt) == 0 {
			continue
		}
		rows++
		value := v.Example
		switch {
		case !v.anyNotBuilt():
			value = v.NotBuilt[0]
		case v.Secret:
			value = "hunter2x"
		}
		inv := loadText(t, "kibo_node:\n  hosts:\n    node-a:\n      "+v.Name+": "+value+"\nweb:\n  hosts:\n    web-a:\n      "+v.Name+": "+value+"\n")
		got := inv.Refused()
		if len(got) != 1 || got[0].Line != 4 || len(got[0].Hosts) != 1 || !strings.Contains(got[0].What, v.Name) {
			t.Errorf("%s: %v", v.Name, got)
		}
		if strings.Contains(got.Error(), "hunter2x") {
			t.Errorf("shows a secret: %v", got)
		}
	}
	if rows == 0 {
		t.Error("nothing is left to build: take NotBuilt out")
	}
	inv := loadText(t, "kibo_node:\n  hosts:\n    node-a: {kibo_cli_on: ctrl, fleet_lock_group: default, ansible_ssh_retries: 0}\n")
	if got := inv.Refused(); len(got) > 0 {
		t.Errorf("defaults are refused: %v", got)
	}
}

func TestKeysNotBuilt(t *testing.T) {
	inv := loadText(t, `
kibo_node:
  vars:
    kibo_commands: {node: {health: /opt/health, stop: /opt/stop}}
    kibo_timeouts: {allow: 10s, ready: 10m}
  hosts: {node-a: , node-b: }
`)
	got := inv.Refused()
	if len(got) != 2 || len(got[0].Hosts) != 2 || !strings.HasPrefix(got[0].What, "kibo_commands.node.health is not built yet") ||
		!strings.HasPrefix(got[1].What, "kibo_timeouts.allow is not built yet") {
		t.Errorf("%v", got)
	}
}

func TestRefusedBeforeConnecting(t *testing.T) {
	inv := loadText(t, "kibo_node:\n  hosts:\n    node-a: {ansible_become: no}\n    node-b: {ansible_ssh_host_key_checking: 'no'}\n    node-c: {ansible_become: yes}\n")
	got := inv.Refused().Error()
	for _, want := range []string{"-:3:30: ansible_become is no, but staging", "-:4:45: ansible_ssh_host_key_checking is no, but host keys"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "node-c") {
		t.Errorf("%s", got)
	}
}
