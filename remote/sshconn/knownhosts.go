package sshconn

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the hash of hashed names in known_hosts
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
)

// The libraries at hand read known_hosts only by file name, compare names case-sensitively, lose the first
// host behind a byte order mark and skip bad lines in silence. So lines are parsed by x/crypto and matched here.

// Markers of known_hosts lines.
const (
	markerCA      = "cert-authority"
	markerRevoked = "revoked"
)

// knownLine is one usable line of a known_hosts file.
type knownLine struct {
	file   string
	number int
	marker string
	names  []string
	key    ssh.PublicKey
}

func (l knownLine) at() string { return l.file + ":" + strconv.Itoa(l.number) }

// parseKnownHosts reads a known_hosts file. Lines that cannot be used are skipped, as ssh does, and reported.
func parseKnownHosts(file string, data []byte) (lines []knownLine, warnings []string) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for i, text := range bytes.Split(data, []byte("\n")) {
		text = bytes.TrimSpace(text)
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		marker, names, key, _, _, err := ssh.ParseKnownHosts(text)
		if err == nil && marker != "" && marker != markerCA && marker != markerRevoked {
			err = fmt.Errorf("unknown marker @%s", marker)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("no key on the line")
			}
			warnings = append(warnings, fmt.Sprintf("%s:%d: line skipped: %v", file, i+1, err))
			continue
		}
		lines = append(lines, knownLine{file: file, number: i + 1, marker: marker, names: names, key: key})
	}
	return lines, warnings
}

// knownName is the name a host has in known_hosts: lower case, no trailing dot, addresses in their short
// form, [name]:port for every port but 22.
func knownName(host string, port int) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.String()
	}
	if port == 0 || port == DefaultPort {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// sameForm brings a name from a file into the form of knownName, so that spelling does not matter.
func sameForm(name string) string {
	if !strings.HasPrefix(name, "[") {
		return knownName(name, 0)
	}
	if host, port, err := net.SplitHostPort(name); err == nil {
		if n, err := strconv.Atoi(port); err == nil {
			return knownName(host, n)
		}
	}
	return knownName(strings.Trim(name, "[]"), 0)
}

// matches tells if the line is about the host with that known name.
func (l knownLine) matches(name string) bool {
	found := false
	for _, pattern := range l.names {
		negated := strings.HasPrefix(pattern, "!")
		pattern = strings.TrimPrefix(pattern, "!")
		var hit bool
		switch {
		case strings.HasPrefix(pattern, "|1|"):
			hit = hashMatches(pattern, name)
		case strings.ContainsAny(pattern, "*?"):
			hit = wildMatches(strings.ToLower(pattern), name)
		default:
			hit = sameForm(pattern) == name
		}
		if hit && negated {
			return false
		}
		found = found || hit
	}
	return found
}

func hashMatches(pattern, name string) bool {
	salt, want, ok := strings.Cut(strings.TrimPrefix(pattern, "|1|"), "|")
	s, errSalt := base64.StdEncoding.DecodeString(salt)
	w, errWant := base64.StdEncoding.DecodeString(want)
	if !ok || errSalt != nil || errWant != nil {
		return false
	}
	m := hmac.New(sha1.New, s)
	m.Write([]byte(name))
	return hmac.Equal(m.Sum(nil), w)
}

// wildMatches is ssh's pattern match: * any run, ? any one character.
func wildMatches(pattern, s string) bool {
	star, back := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]) && pattern[p] != '*':
			p, i = p+1, i+1
		case p < len(pattern) && pattern[p] == '*':
			star, back = p, i
			p++
		case star >= 0:
			back++
			p, i = star+1, back
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// knownFiles reads each known_hosts file once, and is the only one that writes to them.
type knownFiles struct {
	mu   sync.Mutex
	read map[string][]knownLine
}

// lines are those of all files, in order. A file that is not there has none.
func (k *knownFiles) lines(files []string, notice func(string)) ([]knownLine, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read == nil {
		k.read = map[string][]knownLine{}
	}
	var all []knownLine
	for _, file := range files {
		lines, ok := k.read[file]
		if !ok {
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("cannot read known hosts: %w", err)
			}
			var warnings []string
			lines, warnings = parseKnownHosts(file, data)
			k.read[file] = lines
			for _, w := range warnings {
				notice(w)
			}
		}
		all = append(all, lines...)
	}
	return all, nil
}

// record appends a new host to file, unless a line with this key is there by now. A line with another key is there
// if another login to the same name was quicker: then one of the two hosts is not the one meant.
func (k *knownFiles) record(file, name string, key ssh.PublicKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.read[file] {
		switch {
		case !l.matches(name) || l.marker != "":
		case bytes.Equal(l.key.Marshal(), key.Marshal()):
			return nil
		default:
			return &hostKeyError{text: fmt.Sprintf("host key %s differs from %s, recorded for %s a moment ago: two machines answer to this name",
				describe(key), describe(l.key), name)}
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("cannot record host key: %w", err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("cannot record host key: %w", err)
	}
	line := name + " " + strings.TrimPrefix(knownhosts.Line([]string{"x"}, key), "x ") + "\n"
	if last := make([]byte, 1); endsWithoutNewline(f, last) {
		line = "\n" + line
	}
	_, err = f.WriteString(line)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot record host key: %w", err)
	}
	k.read[file] = append(k.read[file], knownLine{file: file, names: []string{name}, key: key})
	return nil
}

func endsWithoutNewline(f *os.File, last []byte) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}
