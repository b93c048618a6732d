package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// VersionsPath is the memory of the packages' versions, in a directory of its own, since looking at it takes a lock there.
const VersionsPath = "/var/lib/kibo-agent/versions/versions.json"

const (
	approvalLasts = 24 * time.Hour // for what a package manager was let do to be seen in dpkg's list
	maxUngated    = 100            // changes that are kept; the latest ones
)

// Versions compares dpkg's list with what the gate let through, so that a change that went past it is noticed
// afterwards. The first look is the base.
type Versions struct {
	Path      string                    // of its memory; empty: none is kept
	Installed func() ([]Package, error) // dpkg's list
	Now       func() time.Time
}

// memory is what Versions keeps.
type memory struct {
	Packages map[string]string     `json:"packages"` // gated packages that are installed
	Approved map[string][]approval `json:"approved,omitempty"`
	Ungated  []gate.Ungated        `json:"ungated,omitempty"`
}

// approval is one version that a package was let change to; "" is its removal.
type approval struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

// Look notices what has changed since the last look and returns the changes that nobody let through and nobody
// has acknowledged.
func (v Versions) Look() ([]gate.Ungated, error) {
	m, err := v.update(func(*memory) {})
	return m.Ungated, err
}

// Approve notes a change that is about to happen. What went past the gate before is noticed first.
func (v Versions) Approve(c Change) error {
	if c.empty() {
		return nil
	}
	_, err := v.update(func(m *memory) {
		for name, version := range c.Install {
			m.approve(name, version, v.Now().UTC())
		}
		for name := range c.Remove {
			m.approve(name, "", v.Now().UTC())
		}
	})
	return err
}

// approve notes one version. apt's and dpkg's hook are both asked about the same change: that is one approval.
func (m *memory) approve(name, version string, now time.Time) {
	others := slices.DeleteFunc(m.Approved[name], func(a approval) bool { return a.Version == version })
	m.Approved[name] = append(others, approval{version, now})
}

// Acknowledge forgets the changes that were noticed, and returns them.
func (v Versions) Acknowledge() ([]gate.Ungated, error) {
	var had []gate.Ungated
	_, err := v.update(func(m *memory) { had, m.Ungated = m.Ungated, nil })
	return had, err
}

// update looks, lets change alter the memory, and writes it down if anything is new.
func (v Versions) update(change func(*memory)) (memory, error) {
	if v.Path == "" {
		return memory{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(v.Path), 0o755); err != nil {
		return memory{}, fmt.Errorf("cannot make %s: %w", filepath.Dir(v.Path), err)
	}
	held, err := takeLock(context.Background(), v.Path+".lock", unix.LOCK_EX)
	if err != nil {
		return memory{}, err
	}
	defer held.release()
	packages, err := v.Installed()
	if err != nil {
		return memory{}, err
	}
	var m memory
	err = readJSON(v.Path, &m)
	if errors.Is(err, os.ErrNotExist) {
		m, err = memory{Packages: sure(packages)}, nil
	}
	if err != nil {
		return memory{}, err
	}
	before, err := m.text()
	if err != nil {
		return m, err
	}
	m.compare(packages, v.Now().UTC())
	change(&m)
	after, err := m.text()
	if _, statErr := os.Lstat(v.Path); err != nil || before == after && statErr == nil {
		return m, err
	}
	return m, writeDurable(v.Path, []byte(after), 0o644)
}

// sure is what is on the host for certain: of a package that dpkg is in the middle of, nothing can be said.
func sure(packages []Package) map[string]string {
	at := map[string]string{}
	for _, p := range packages {
		if Gated(p.Name) && p.settled() && p.there() {
			at[p.Name] = p.Version
		}
	}
	return at
}

func (p Package) settled() bool { return p.Status != "half-installed" }
func (p Package) there() bool   { return p.Status != "not-installed" && p.Status != "config-files" }

// compare moves the memory to what dpkg says now.
func (m *memory) compare(packages []Package, now time.Time) {
	if m.Packages == nil {
		m.Packages = map[string]string{}
	}
	if m.Approved == nil {
		m.Approved = map[string][]approval{}
	}
	is := sure(packages)
	for _, p := range packages {
		if !p.settled() {
			is[p.Name] = m.Packages[p.Name] // ask again later
		}
	}
	names := map[string]bool{}
	for name := range is {
		names[name] = Gated(name)
	}
	for name := range m.Packages {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, version := m.Packages[name], is[name]
		if !names[name] || was == version {
			continue
		}
		if !m.approved(name, version, now) {
			m.Ungated = append(m.Ungated, gate.Ungated{Package: name, Was: was, Now: version, Noticed: now})
		}
		if m.Packages[name] = version; version == "" {
			delete(m.Packages, name)
		}
	}
	m.Ungated = m.Ungated[max(0, len(m.Ungated)-maxUngated):]
	m.expire(now)
}

// approved reports whether the change was let through, and uses the approval up with those before it.
func (m *memory) approved(name, version string, now time.Time) bool {
	for i, a := range m.Approved[name] {
		if a.Version == version && now.Sub(a.At) < approvalLasts {
			m.Approved[name] = m.Approved[name][i+1:]
			return true
		}
	}
	return false
}

func (m *memory) expire(now time.Time) {
	for name, all := range m.Approved {
		all = slices.DeleteFunc(all, func(a approval) bool { return now.Sub(a.At) >= approvalLasts })
		if m.Approved[name] = all; len(all) == 0 {
			delete(m.Approved, name)
		}
	}
}

// text is the memory as its file holds it.
func (m memory) text() (string, error) {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", fmt.Errorf("cannot encode the versions: %w", err)
	}
	return string(data) + "\n", nil
}
