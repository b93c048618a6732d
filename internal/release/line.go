package release

import (
	"errors"
	"fmt"
	"strings"
)

// Mode is how a fleet has to be moved from one set of builds to another. The values are those of plan.Mode.
type Mode string

// Modes.
const (
	Rolling      Mode = "rolling"
	StopTheWorld Mode = "stop-the-world"
)

// Build is a program as built: its version, and the source revision where known.
type Build struct {
	Version  string
	Revision string
}

func (b Build) String() string {
	if b.Revision == "" {
		return b.Version
	}
	return b.Version + " (revision " + b.Revision + ")"
}

// ErrNoPath is the reason of moves that the contract rules out (K5, K62).
var ErrNoPath = errors.New("no supported way")

// Line returns the release line of a version, MAJOR.MINOR, if it is on one: releases and -rc.N from 0.1.0 on are (K1).
// Alpha, beta, 0.0.x and builds with metadata are on none (K2).
func Line(v string) (string, bool) {
	p, err := ParseVersion(v)
	if err != nil || p.Metadata() != "" || (p.Major() == 0 && p.Minor() == 0) {
		return "", false
	}
	if pre := p.Prerelease(); pre != "" {
		number, ok := strings.CutPrefix(pre, "rc.")
		if !ok || !isNumber(number) {
			return "", false
		}
	}
	return fmt.Sprintf("%d.%d", p.Major(), p.Minor()), true
}

// SameLine reports whether both versions are on one and the same release line (K1).
func SameLine(a, b string) bool {
	x, okA := Line(a)
	y, okB := Line(b)
	return okA && okB && x == y
}

// ModeFor says how to move from every installed build to the target, with the reason in words (K1-K3). The error,
// an ErrNoPath, says why there is no way at all (K5, K62).
func ModeFor(from []Build, to Build) (Mode, string, error) {
	if len(from) == 0 {
		return "", "", errors.New("cannot choose how to upgrade: no installed version is known")
	}
	for _, f := range from {
		if err := passable(f.Version, to.Version); err != nil {
			return "", "", err
		}
	}
	for _, f := range from {
		if why, ok := apart(f, to); ok {
			return StopTheWorld, why, nil
		}
	}
	line, ok := Line(to.Version)
	if !ok {
		return Rolling, "every host has the very build already", nil
	}
	return Rolling, "every installed version is on the target's release line " + line, nil
}

// apart says why two builds cannot serve side by side.
func apart(from, to Build) (string, bool) {
	if SameLine(from.Version, to.Version) {
		return "", false
	}
	if from.Revision != "" && from.Revision == to.Revision && SameVersion(from.Version, to.Version) {
		return "", false // K2: the identical source revision
	}
	for _, b := range []Build{from, to} {
		if _, ok := Line(b.Version); !ok {
			return fmt.Sprintf("%s is on no release line: it works only with the identical source revision", b), true
		}
	}
	a, _ := Line(from.Version)
	b, _ := Line(to.Version)
	return fmt.Sprintf("installed %s is on release line %s, the target %s on %s", from.Version, a, to.Version, b), true
}

// passable returns an error if the contract rules the move out.
func passable(from, to string) error {
	f, errF := ParseVersion(from)
	t, errT := ParseVersion(to)
	if err := errors.Join(errF, errT); err != nil {
		return err
	}
	old := func(major, minor uint64) bool { return major == 0 && minor < 2 }
	early := f.Major() == 0 && (f.Minor() == 0 || (f.Minor() == 1 && f.Patch() == 0 && f.Prerelease() != ""))
	switch {
	case early && !old(t.Major(), t.Minor()):
		return fmt.Errorf("%w from %s to %s: first go to the newest 0.1.x, then on from there", ErrNoPath, from, to)
	case !old(f.Major(), f.Minor()) && old(t.Major(), t.Minor()):
		return fmt.Errorf("%w from %s back to %s: 0.2.0 and later cannot be left downwards", ErrNoPath, from, to)
	}
	return nil
}
