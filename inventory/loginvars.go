package inventory

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// loginVariables are Ansible's connection variables.
func loginVariables() []Variable {
	return slices.Concat(reachVariables(), argumentVariables(), becomeVariables(), idleVariables())
}

func reachVariables() []Variable {
	return []Variable{
		{Name: "ansible_host", Others: []string{"ansible_ssh_host"}, Kind: Text, Standing: Honoured, Default: "the host's inventory name",
			Doc: "Address or name to connect to; ssh_config may know it.", Example: "192.0.2.11", set: func(b *binding, i item) {
				if s, ok := b.word(i); ok {
					b.address(i, s)
				}
			}},
		{Name: "ansible_port", Others: []string{"ansible_ssh_port"}, Kind: Number, Standing: Honoured, Default: "ssh_config's, else 22",
			Doc: "Port to connect to.", Example: "2222", set: func(b *binding, i item) {
				if n, ok := b.number(i, 1, 65535); ok {
					b.host.Login.Port = n
				}
			}},
		{Name: "ansible_user", Others: []string{"ansible_ssh_user"}, Kind: Text, Standing: Honoured, Default: "ssh_config's, else yours",
			Doc: "User to log in as.", Example: "ops", set: func(b *binding, i item) {
				s, ok := b.word(i)
				if ok && (strings.ContainsAny(s, " \t") || strings.HasPrefix(s, "-")) {
					b.fail(i, fmt.Sprintf("%q is no user name", s), "")
				} else if ok {
					b.host.Login.User = s
				}
			}},
		{Name: "ansible_private_key_file", Others: []string{"ansible_ssh_private_key_file"}, Kind: Text, Standing: Honoured,
			Default: "ssh_config's, agent, default keys", Doc: "Private key on this machine.", Example: "~/.ssh/id_ed25519", set: func(b *binding, i item) {
				if s, ok := b.word(i); ok {
					b.host.Login.KeyFiles = []string{s}
				}
			}},
		{Name: "ansible_password", Others: []string{"ansible_ssh_pass", "ansible_ssh_password"}, Kind: Text, Secret: true, Standing: Honoured,
			Default: "none", NotBuilt: []string{"*"}, Doc: "Password to log in with.", set: func(b *binding, i item) {
				if s, ok := b.text(i); ok {
					b.host.Login.Password = s
				}
			}},
		{Name: "ansible_connection", Kind: Choice, Values: sshConnections(), Standing: Honoured, Default: "`ssh`",
			Doc: "Any way that is not SSH is refused: `local` would make every such host this machine.", Example: "ssh", set: setConnection},
		{Name: "ansible_ssh_timeout", Others: []string{"ansible_timeout"}, Kind: Duration, Standing: Honoured, Default: "ssh_config's, else 10s",
			Doc: "Time limit of connecting.", Example: "30", set: func(b *binding, i item) {
				if d, ok := b.duration(i); ok {
					b.host.Login.Timeout = d
				}
			}},
		{Name: "ansible_ssh_retries", Others: []string{"ansible_reconnection_retries"}, Kind: Number, Standing: Honoured, Default: "0",
			Doc: "How often connecting is tried again.", Example: "2", set: func(b *binding, i item) {
				if n, ok := b.number(i, 0, 100); ok {
					b.host.Login.Retries = n
				}
			}},
		{Name: "ansible_host_key_checking", Others: []string{"ansible_ssh_host_key_checking"}, Kind: Boolean, Standing: Honoured, Default: "yes",
			Doc: "Host keys are always checked; `no` is refused before connecting.", Example: "yes", set: func(b *binding, i item) {
				if v, ok := b.boolean(i); ok {
					b.host.Login.HostKeyCheck = &v
					b.must(i, v, "host keys are always verified", "take it out and put the host's key into known_hosts")
				}
			}},
	}
}

// address refuses what ssh would take for an option, a user or a port.
func (b *binding) address(i item, s string) {
	_, err := netip.ParseAddr(s)
	switch {
	case strings.ContainsAny(s, " /@[],") || s[0] == '-':
		b.fail(i, fmt.Sprintf("%q is neither a name nor an address", s), "")
	case err != nil && strings.Contains(s, ":"):
		b.fail(i, fmt.Sprintf("%q is neither a name nor an IPv6 address", s), "a port goes into ansible_port")
	default:
		b.host.Login.Address = s
	}
}

func sshConnections() []string {
	return []string{"ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh", "ansible.builtin.paramiko_ssh"}
}

func setConnection(b *binding, i item) {
	s, ok := b.text(i)
	if !ok || slices.Contains(sshConnections(), s) {
		return
	}
	if s == "local" || s == "ansible.builtin.local" {
		b.fail(i, `"local" would make this host the machine you sit at`, "remove it, or take the host out of this inventory; hosts are reached by SSH only")
		return
	}
	b.fail(i, fmt.Sprintf("%q is not SSH, and hosts are reached by SSH only", s), "remove it, or take the host out of this inventory")
}

// argumentVariables carry words for ssh's command line, in the order in which Ansible puts them there.
func argumentVariables() []Variable {
	row := func(name, doc string) Variable {
		return Variable{Name: name, Kind: Text, Standing: Honoured, Default: "none", Doc: doc, Example: `"-o ProxyJump=bastion"`,
			set: func(b *binding, i item) {
				if i.value == "" {
					return
				}
				s, ok := b.text(i)
				if !ok {
					return
				}
				words, err := splitWords(s)
				if err != nil {
					b.fail(i, "cannot be split into words: "+err.Error(), "")
					return
				}
				b.host.Login.CommonArgs = append(b.host.Login.CommonArgs, words...)
			}}
	}
	return []Variable{
		row("ansible_ssh_args", "Words for ssh. What cannot be honoured is refused when connecting."),
		row("ansible_ssh_common_args", "More words for ssh, after ansible_ssh_args."),
		row("ansible_ssh_extra_args", "More words for ssh, after ansible_ssh_common_args."),
	}
}

func becomeVariables() []Variable {
	return []Variable{
		{Name: "ansible_become", Kind: Boolean, Standing: Honoured, Default: "yes where root is needed", Doc: "Whether sudo may be used; `no` is refused before connecting.", Example: "yes",
			set: func(b *binding, i item) {
				if v, ok := b.boolean(i); ok {
					b.host.Login.Become = &v
					b.must(i, v, "staging and installing need root", "take it out")
				}
			}},
		{Name: "ansible_become_password", Others: []string{"ansible_become_pass", "ansible_sudo_pass"}, Kind: Text, Secret: true, Standing: Honoured,
			Default: "none", Doc: "Password for sudo.", set: func(b *binding, i item) {
				if s, ok := b.text(i); ok {
					b.host.Login.BecomePass = s
				}
			}},
		refuse("ansible_become_user", "The user to become. Only root can do what an upgrade needs.", []string{"root"}, "ansible_sudo_user"),
		refuse("ansible_become_method", "How to become root.", []string{"sudo", "ansible.builtin.sudo"}),
		refuse("ansible_become_exe", "The sudo program.", []string{"sudo", "/usr/bin/sudo"}, "ansible_sudo_exe"),
		refuse("ansible_become_flags", "Flags of sudo.", []string{"", "-H", "-n", "-S", "-H -S", "-H -n", "-H -S -n", "-n -H"}, "ansible_sudo_flags"),
		refuse("ansible_ssh_executable", "The ssh program; connections are made by kibo-rollout itself.", []string{"ssh", "/usr/bin/ssh"}),
		refuse("ansible_ssh_pkcs11_provider", "A PKCS#11 library; load the token into an agent instead (ssh-add -s).", []string{""}),
	}
}

// refuse is a row for a variable that is accepted only with the values that mean what is done anyway.
func refuse(name, doc string, only []string, others ...string) Variable {
	shown := strings.Join(only, ", ")
	if only[0] == "" {
		shown = "none"
	}
	return Variable{Name: name, Others: others, Kind: Choice, Values: only, Standing: Refused, Default: shown, Doc: doc,
		set: func(b *binding, i item) {
			if s, ok := i.value.(string); !ok || !slices.Contains(only, s) {
				b.fail(i, fmt.Sprintf("%v is not possible here", i.value), "leave it out, or use "+shown)
			}
		}}
}

// idleVariables change nothing here, each for a reason.
func idleVariables() []Variable {
	row := func(doc string, names ...string) Variable {
		return Variable{Name: names[0], Others: names[1:], Kind: Text, Standing: NoEffect, Default: "none", Doc: doc}
	}
	return []Variable{
		row("One connection a host is kept open anyway.", "ansible_control_path", "ansible_ssh_control_path"),
		row("One connection a host is kept open anyway.", "ansible_control_path_dir", "ansible_ssh_control_path_dir"),
		row("Nothing is copied into Ansible's directory.", "ansible_remote_tmp"),
		row("Commands are never copied as files.", "ansible_pipelining", "ansible_ssh_pipelining"),
		row("Files are sent by SFTP, or through the command channel where there is none.", "ansible_ssh_transfer_method", "ansible_scp_if_ssh", "ansible_sftp_batch_mode"),
		row("No scp or sftp program is run.", "ansible_scp_executable", "ansible_sftp_executable", "ansible_scp_extra_args", "ansible_sftp_extra_args"),
		row("No terminal is asked for.", "ansible_ssh_use_tty"),
		row("The password prompt is not read from a program.", "ansible_sshpass_prompt"),
		row("Commands go through /bin/sh.", "ansible_shell_type", "ansible_shell_executable"),
		row("No Python is needed on the hosts.", "ansible_python_interpreter"),
	}
}

func sameValue(a, b any) bool {
	return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b)
}
