//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Inventory is the Ansible inventory of the lab, with User.
func (l *Lab) Inventory() string { return filepath.Join(l.Dir, "inventory.yml") }

// PasswordInventory is the same fleet with PasswordUser, whose sudo asks for a password.
func (l *Lab) PasswordInventory() string { return filepath.Join(l.Dir, "inventory-password.yml") }

// KnownHosts is an OpenSSH known_hosts file with every host's key.
func (l *Lab) KnownHosts() string { return filepath.Join(l.Dir, "known_hosts") }

// SSHConfig is for `ssh -F`: hosts by their names, keys verified.
func (l *Lab) SSHConfig() string { return filepath.Join(l.Dir, "ssh_config") }

// Key is the private key that every host's users accept.
func (l *Lab) Key() string { return l.keyPath() }

// writeClientFiles makes the keys, and writes what clients need to reach the hosts.
func (l *Lab) writeClientFiles() error {
	if _, err := ensureKey(l.keyPath(), "kibo-lab"); err != nil {
		return err
	}
	var known strings.Builder
	for _, host := range l.state.Hosts {
		public, err := ensureKey(l.hostKeyPath(host.Name), host.Name)
		if err != nil {
			return err
		}
		known.WriteString(knownHostsLine(host, public))
	}
	files := map[string]string{
		l.KnownHosts():        known.String(),
		l.Inventory():         l.inventory(User),
		l.PasswordInventory(): l.inventory(PasswordUser),
		l.SSHConfig():         l.sshConfig(),
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
	}
	return nil
}

// knownHostsLine is the line of a host, with its port where that is not 22.
func knownHostsLine(host Host, public ssh.PublicKey) string {
	return knownhosts.Line([]string{fmt.Sprintf("[%s]:%d", host.Address, host.Port)}, public) + "\n"
}

// inventory is the fleet as Ansible's YAML.
func (l *Lab) inventory(user string) string {
	var text strings.Builder
	fmt.Fprintf(&text, `# A lab of kibo-rollout on this machine. Written by it, and again at every "lab up".
all:
  vars:
    ansible_user: %s
    ansible_ssh_private_key_file: %s
    ansible_ssh_common_args: -o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes
`, user, l.keyPath(), l.KnownHosts())
	if user == PasswordUser {
		fmt.Fprintf(&text, "    ansible_become_password: %s\n", Password)
	}
	text.WriteString("  hosts:\n")
	for _, host := range l.state.Hosts {
		fmt.Fprintf(&text, "    %s:\n      ansible_host: %s\n      ansible_port: %d\n", host.Name, host.Address, host.Port)
		if host.NodeName != "" {
			fmt.Fprintf(&text, "      kibo_node_name: %s\n", host.NodeName)
		}
	}
	text.WriteString("  children:\n")
	for _, part := range release.Parts() {
		fmt.Fprintf(&text, "    kibo_%s:\n      hosts:\n", part)
		for _, host := range l.With(part) {
			fmt.Fprintf(&text, "        %s:\n", host.Name)
		}
	}
	return text.String()
}

// With lists the hosts that run a part.
func (l *Lab) With(part release.Part) []Host {
	var hosts []Host
	for _, host := range l.state.Hosts {
		if host.Has(part) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// sshConfig is the fleet for OpenSSH's client.
func (l *Lab) sshConfig() string {
	var text strings.Builder
	for _, host := range l.state.Hosts {
		fmt.Fprintf(&text, "Host %s\n  HostName %s\n  Port %d\n", host.Name, host.Address, host.Port)
	}
	fmt.Fprintf(&text, `Host *
  User %s
  IdentityFile %s
  IdentitiesOnly yes
  UserKnownHostsFile %s
  StrictHostKeyChecking yes
  BatchMode yes
`, User, l.keyPath(), l.KnownHosts())
	return text.String()
}
