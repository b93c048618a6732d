package simfleet

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Inventory is what WriteInventory wrote.
type Inventory struct {
	File       string // Ansible inventory in YAML
	KnownHosts string
	Key        string // private key of the login user, 0600
}

// WriteInventory writes an Ansible inventory of the fleet, its known_hosts and the login user's private key into a
// directory. Call it after Start: ports are part of it.
func (f *Fleet) WriteInventory(dir string) (Inventory, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Inventory{}, fmt.Errorf("cannot write inventory: %w", err)
	}
	inv := Inventory{
		File: filepath.Join(abs, "hosts.yml"), KnownHosts: filepath.Join(abs, "known_hosts"), Key: filepath.Join(abs, "id_ed25519"),
	}
	block, err := ssh.MarshalPrivateKey(f.key, "kibo-rollout simulated fleet")
	if err != nil {
		return inv, fmt.Errorf("cannot write key: %w", err)
	}
	if err := writeFile(inv.Key, pem.EncodeToMemory(block), 0o600); err != nil {
		return inv, err
	}
	if err := writeFile(inv.KnownHosts, f.knownHosts(), 0o644); err != nil {
		return inv, err
	}
	return inv, writeFile(inv.File, f.inventory(inv), 0o644)
}

func (f *Fleet) knownHosts() []byte {
	var b bytes.Buffer
	for _, m := range f.machines {
		b.WriteString(knownhosts.Line([]string{knownhosts.Normalize(m.Addr())}, m.HostKey()) + "\n")
	}
	return b.Bytes()
}

func (f *Fleet) inventory(inv Inventory) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A simulated fleet on loopback. It lives as long as the program that made it.\nall:\n  vars:\n    ansible_user: %s\n"+
		"    ansible_ssh_private_key_file: %s\n    ansible_ssh_common_args: %s\n  hosts:\n",
		f.user, quote(inv.Key), quote("-o UserKnownHostsFile="+word(inv.KnownHosts)+" -o GlobalKnownHostsFile=/dev/null -o IdentitiesOnly=yes"))
	for _, m := range f.machines {
		address, port, _ := net.SplitHostPort(m.Addr())
		fmt.Fprintf(&b, "    %s:\n      ansible_host: %s\n      ansible_port: %s\n", m.Name(), address, port)
		if m.Spec.NodeName != m.Name() {
			fmt.Fprintf(&b, "      kibo_node_name: %s\n", m.Spec.NodeName)
		}
		if m.Spec.Password != "" {
			fmt.Fprintf(&b, "      ansible_become_password: %s\n", quote(m.Spec.Password))
		}
	}
	b.WriteString("  children:\n")
	for _, p := range release.Parts() {
		fmt.Fprintf(&b, "    kibo_%s:\n      hosts:", p)
		empty := " {}\n"
		for _, m := range f.machines {
			if !slices.Contains(m.Spec.Parts, p) {
				continue
			}
			if empty != "" {
				b.WriteString("\n")
				empty = ""
			}
			fmt.Fprintf(&b, "        %s:\n", m.Name())
		}
		b.WriteString(empty)
	}
	return b.Bytes()
}

// quote writes a YAML single-quoted string.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// word quotes a word of ansible_ssh_common_args where it has a space in it.
func word(s string) string {
	if strings.ContainsAny(s, " \t\"'\\") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return s
}
