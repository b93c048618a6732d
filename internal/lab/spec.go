//go:build linux

// Package lab boots a fleet of real Debian hosts on this machine: systemd-nspawn containers on overlay
// mounts, each with its own loopback address, sshd, host key and login users, and the stand-in's packages
// installed and running. It is what end-to-end tests run against, and what `make lab-up` starts.
//
// Everything it makes can be found again from the lab's directory alone, so that a lab whose maker was
// killed can be repaired or taken down by the next process.
package lab

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Login users of every host, both with the lab's key.
const (
	User         = "ops"          // sudo without a password
	PasswordUser = "ops-pw"       // sudo asks for Password
	Password     = "kibo-lab-pw1" // of PasswordUser
)

// DefaultDir is where `lab up` makes its lab.
const DefaultDir = "/var/lib/kibo-lab/default"

// DefaultHosts is the fleet of `lab up` in the words of ParseHosts.
const DefaultHosts = "ctrl=1,node=3,e2b=1,gw=1"

// DefaultCache is where base root file systems are kept.
const DefaultCache = "/var/cache/kibo-lab"

// Spec says what lab is wanted.
type Spec struct {
	Dir       string                           // everything of this lab lies below it; default DefaultDir
	Cache     string                           // base root file systems; default DefaultCache
	Hosts     []HostSpec                       // default DefaultHosts
	Source    string                           // the checkout that the stand-in is built from; "": hosts without Kibotos
	Version   string                           // release that is installed; default "0.1.2"
	Instances int                              // seeded on each node; default 2
	Log       func(format string, args ...any) // told what happens; may be nil
}

// HostSpec is one wanted host.
type HostSpec struct {
	Name     string         `json:"name"`               // host name and inventory name
	Suite    string         `json:"suite"`              // Debian suite
	Parts    []release.Part `json:"parts"`              // in part order
	NodeName string         `json:"nodeName,omitempty"` // of a node, at ctrl
}

// Has reports whether the host runs the part.
func (h HostSpec) Has(p release.Part) bool { return slices.Contains(h.Parts, p) }

// Suites are the Debian releases a lab can boot, in the order in which hosts get them.
func Suites() []string { return []string{"bookworm", "trixie"} }

// ParseHosts reads a fleet such as "ctrl=1,node=3@trixie,ctrl+gw=1": parts joined by "+", how many
// hosts, and optionally their Debian suite. Without a suite, hosts alternate between all of them.
func ParseHosts(text string) ([]HostSpec, error) {
	var hosts []HostSpec
	numbers := map[release.Part]int{}
	nodes := 0
	for _, item := range strings.Split(text, ",") {
		parts, count, suite, err := parseItem(item)
		if err != nil {
			return nil, fmt.Errorf("cannot read hosts %q: %w", text, err)
		}
		if len(hosts)+count > maxHosts {
			return nil, fmt.Errorf("cannot read hosts %q: more than %d hosts", text, maxHosts)
		}
		for range count {
			numbers[parts[0]]++
			host := HostSpec{Name: fmt.Sprintf("%s-%d", parts[0], numbers[parts[0]]), Suite: suite, Parts: parts}
			if suite == "" {
				host.Suite = Suites()[len(hosts)%len(Suites())]
			}
			if host.Has(release.Node) {
				host.NodeName = nodeName(nodes)
				nodes++
			}
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// maxHosts is how many addresses one network of a lab has.
const maxHosts = 250

// parseItem reads one "parts=count@suite".
func parseItem(item string) ([]release.Part, int, string, error) {
	left, suite, named := strings.Cut(item, "@")
	if named && !slices.Contains(Suites(), suite) {
		return nil, 0, "", fmt.Errorf("unknown suite %q, want one of %s", suite, strings.Join(Suites(), ", "))
	}
	names, number, counted := strings.Cut(left, "=")
	count := 1
	if counted {
		var err error
		if count, err = strconv.Atoi(number); err != nil || count < 1 || count > maxHosts {
			return nil, 0, "", fmt.Errorf("%q is not a number of hosts", number)
		}
	}
	var parts []release.Part
	for _, name := range strings.Split(names, "+") {
		part := release.Part(strings.TrimSpace(name))
		if !part.Valid() || slices.Contains(parts, part) {
			return nil, 0, "", fmt.Errorf("%q is no part, or is named twice", name)
		}
		parts = append(parts, part)
	}
	return parts, count, suite, nil
}

// nodeName makes node-a … node-z, node-aa …: deliberately not the host's name, as in many real fleets.
func nodeName(n int) string {
	letters := ""
	for n++; n > 0; n = (n - 1) / 26 {
		letters = string(rune('a'+(n-1)%26)) + letters
	}
	return "node-" + letters
}

// filled is the spec with defaults in place and paths absolute.
func (s Spec) filled() (Spec, error) {
	if s.Dir == "" {
		s.Dir = DefaultDir
	}
	if s.Cache == "" {
		s.Cache = DefaultCache
	}
	if s.Version == "" {
		s.Version = "0.1.2"
	}
	if s.Instances == 0 {
		s.Instances = 2
	}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	var err error
	if len(s.Hosts) == 0 {
		if s.Hosts, err = ParseHosts(DefaultHosts); err != nil {
			return s, err
		}
	}
	for _, path := range []*string{&s.Dir, &s.Cache} {
		if *path, err = labPath(*path); err != nil {
			return s, err
		}
	}
	return s, nil
}

// labPath makes a path absolute and refuses what overlay's mount options cannot hold.
func labPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot use directory %s: %w", path, err)
	}
	if strings.ContainsAny(abs, ":,\\\" \n") || abs == "/" {
		return "", fmt.Errorf("cannot use directory %q: a lab's path must be no root and hold no colon, comma, quote, backslash or space", abs)
	}
	return abs, nil
}
