package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// libraryKeys are the settings that are looked up when there is no ssh binary.
func libraryKeys() []string {
	return []string{
		"hostname", "user", "port", "identityfile", "certificatefile", "identitiesonly", "identityagent", "proxyjump",
		"proxycommand", "hostkeyalias", "userknownhostsfile", "globalknownhostsfile", "stricthostkeychecking", "connecttimeout",
		"serveraliveinterval", "serveralivecountmax", "hostkeyalgorithms", "ciphers", "kexalgorithms", "macs", "addressfamily",
		"knownhostscommand", "revokedhostkeys", "bindaddress", "bindinterface", "remotecommand", "pkcs11provider", "canonicalizehostname",
	}
}

// library evaluates the files without an ssh binary. What the library cannot evaluate (Match, above all) is an error:
// going on with half a configuration would mean the wrong user on the wrong host.
func (r *Resolver) library(_ context.Context, w words, address string) (settings, error) {
	s := settings{}
	for _, set := range w.set {
		s[set.key] = append(s[set.key], set.value)
	}
	files := []string{filepath.Join(r.Home, ".ssh", "config"), r.System}
	if r.System == "" {
		files[1] = "/etc/ssh/ssh_config"
	}
	if w.config != "" {
		files = []string{w.config}
	}
	for _, file := range files {
		if file == "none" {
			continue
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && w.config == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read ssh_config: %w", err)
		}
		if err := addFile(s, file, data, address); err != nil {
			return nil, err
		}
	}
	if v := s.one("canonicalizehostname"); v != "" && v != "no" {
		return nil, errors.New("cannot honour CanonicalizeHostname without an ssh binary")
	}
	r.defaults(s)
	t := tokens{r: r, cfg: Config{Address: address}, name: address}
	if name := s.one("hostname"); name != "" {
		name, err := t.expand(name)
		if err != nil {
			return nil, err
		}
		s["hostname"] = []string{name}
	}
	return s, nil
}

func addFile(s settings, file string, data []byte, address string) error {
	parsed, err := ssh_config.DecodeBytes(plainHosts(data))
	if err != nil {
		return fmt.Errorf("cannot evaluate %s without an ssh binary: %w", file, err)
	}
	for _, key := range libraryKeys() {
		values, err := parsed.GetAll(address, key)
		if err != nil {
			return fmt.Errorf("cannot evaluate %s: %w", file, err)
		}
		many := key == "identityfile" || key == "certificatefile"
		for _, v := range values {
			if v = strings.Trim(v, `"`); many || len(s[key]) == 0 {
				s[key] = append(s[key], v)
			}
		}
	}
	return nil
}

// plainHosts writes Host lines as the library understands them: patterns without quotes, one space apart.
func plainHosts(data []byte) []byte {
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		words := strings.Fields(strings.Replace(string(line), "=", " ", 1))
		if len(words) > 1 && strings.EqualFold(words[0], "host") {
			lines[i] = []byte("Host " + strings.ReplaceAll(strings.Join(words[1:], " "), `"`, ""))
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

func (r *Resolver) defaults(s settings) {
	for key, value := range map[string]string{
		"userknownhostsfile":   "~/.ssh/known_hosts ~/.ssh/known_hosts2",
		"globalknownhostsfile": "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",
	} {
		if len(s[key]) == 0 {
			s[key] = []string{value}
		}
	}
	if len(s["identityfile"]) == 0 {
		s["identityfile"] = []string{"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"}
	}
}
