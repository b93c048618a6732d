package release

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NewTarget makes a target of package files. All must be of the version asked for by their control data (K6); an empty
// version means the one that all of them have. Packages that are no part of Kibotos are refused. A file of another version
// is passed over only where the same part and architecture is there in the right one. Each refusal names its file.
func NewTarget(version string, debs []Deb) (Target, error) {
	if len(debs) == 0 {
		return Target{}, errors.New("cannot make a target: no .deb given")
	}
	version, err := targetVersion(version, debs)
	if err != nil {
		return Target{}, err
	}
	var errs []error
	chosen := map[string]Deb{}
	var wrong []Deb
	for _, d := range debs {
		got, err := FromDebian(d.Version)
		switch {
		case !d.Part.Valid():
			errs = append(errs, fmt.Errorf("%s: package %q is no part of Kibotos", d.File, d.Package))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", d.File, err))
		case !SameVersion(got, version):
			wrong = append(wrong, d)
		default:
			if err := choose(chosen, d); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, d := range wrong {
		if _, ok := chosen[slot(d)]; !ok {
			errs = append(errs, fmt.Errorf("%s: control data says version %s, but %s was asked for", d.File, d.Version, version))
		}
	}
	t := Target{Version: version, Debs: sorted(chosen)}
	errs = append(errs, ambiguous(t.Debs)...)
	if err := errors.Join(errs...); err != nil {
		return Target{}, err
	}
	return t, nil
}

// targetVersion is the version asked for, or the only one there is.
func targetVersion(asked string, debs []Deb) (string, error) {
	if asked != "" {
		return Normal(asked)
	}
	var seen []string
	for _, d := range debs {
		if !d.Part.Valid() {
			continue
		}
		v, err := FromDebian(d.Version)
		if err != nil {
			return "", fmt.Errorf("%s: %w", d.File, err)
		}
		if !slices.Contains(seen, v) {
			seen = append(seen, v)
		}
	}
	slices.Sort(seen)
	switch len(seen) {
	case 0:
		return "", errors.New("cannot make a target: no .deb of a Kibotos part given")
	case 1:
		return seen[0], nil
	}
	return "", fmt.Errorf("the .debs are of several versions (%s): say which with --to", strings.Join(seen, ", "))
}

func slot(d Deb) string { return string(d.Part) + "/" + d.Architecture }

// choose takes a file for its part and architecture. Two files are the same only if their bytes are.
func choose(chosen map[string]Deb, d Deb) error {
	other, taken := chosen[slot(d)]
	if taken && other.SHA256 != d.SHA256 {
		return fmt.Errorf("%s and %s: both are %s %s for %s, with different contents",
			other.File, d.File, d.Package, d.Version, d.Architecture)
	}
	if !taken {
		chosen[slot(d)] = d
	}
	return nil
}

// ambiguous refuses a part that comes for one architecture and for all of them.
func ambiguous(debs []Deb) []error {
	var errs []error
	for _, d := range debs {
		for _, e := range debs {
			if d.Part == e.Part && d.Architecture == "all" && e.Architecture != "all" {
				errs = append(errs, fmt.Errorf("%s and %s: %s comes for all architectures and for %s",
					d.File, e.File, d.Package, e.Architecture))
			}
		}
	}
	return errs
}

// sorted lists the chosen files by part order, then architecture.
func sorted(chosen map[string]Deb) []Deb {
	out := make([]Deb, 0, len(chosen))
	for _, d := range chosen {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Deb) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Parts(), a.Part), slices.Index(Parts(), b.Part)),
			cmp.Compare(a.Architecture, b.Architecture))
	})
	return out
}

// Digest is the identity of a target: hex SHA-256 over version, packages and contents, whatever the files are called.
func (t Target) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "version %q\n", t.Version)
	for _, d := range t.Debs {
		fmt.Fprintf(h, "deb %q %q %q %q\n", d.Package, d.Version, d.Architecture, d.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// StageName is the name of the target's own directory below a host's staging directory: another content never shares it (K10).
func (t Target) StageName() string { return t.Version + "-" + t.Digest()[:8] }
