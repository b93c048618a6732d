package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
		"proxyusefdpass", "refuseconnection", "connectionattempts", "requiredrsasize",
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
		if err := r.addFile(s, file, data, address); err != nil {
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

func (r *Resolver) addFile(s settings, file string, data []byte, address string) error {
	dir := filepath.Join(r.Home, ".ssh")
	if strings.HasPrefix(file, "/etc/ssh/") {
		dir = "/etc/ssh"
	}
	lines, err := r.flatten(file, data, dir, maxIncludes)
	if err != nil {
		return err
	}
	parsed, err := ssh_config.DecodeBytes([]byte(strings.Join(lines, "\n") + "\n"))
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

// maxIncludes bounds files that include each other.
const maxIncludes = 16

// flatten writes a file as the library understands it: included files in place, Host patterns without quotes and one
// space apart. dir is where relative includes are looked for. Match is refused.
func (r *Resolver) flatten(file string, data []byte, dir string, depth int) ([]string, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%s: more than %d files include each other", file, maxIncludes)
	}
	var lines []string
	block := "" // the Host line that the current one belongs to
	for number, line := range strings.Split(strings.ReplaceAll(string(data), "\r", ""), "\n") {
		words := strings.Fields(strings.ReplaceAll(strings.Replace(line, "=", " ", 1), `"`, ""))
		if len(words) == 0 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "match":
			return nil, fmt.Errorf("%s:%d: cannot evaluate Match without an ssh binary", file, number+1)
		case "host":
			block = "Host " + strings.Join(words[1:], " ")
			lines = append(lines, block)
		case "include":
			included, err := r.included(words[1:], dir, depth)
			if err != nil {
				return nil, err
			}
			if block != "" && slices.ContainsFunc(included, func(l string) bool { return strings.HasPrefix(l, "Host ") }) {
				return nil, fmt.Errorf("%s:%d: cannot evaluate Host blocks included inside of a Host block without an ssh binary", file, number+1)
			}
			lines = append(lines, included...)
			if block == "" && len(included) > 0 {
				lines = append(lines, "Host *") // what follows is not part of the last block included
			}
		default:
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func (r *Resolver) included(patterns []string, dir string, depth int) ([]string, error) {
	var lines []string
	for _, pattern := range patterns {
		pattern = r.path(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot include %s: %w", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("cannot read ssh_config: %w", err)
			}
			more, err := r.flatten(file, data, dir, depth-1)
			if err != nil {
				return nil, err
			}
			lines = append(lines, more...)
		}
	}
	return lines, nil
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
