package release

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"pault.ag/go/debian/version"
)

// maxVersion is how long a version may be, in bytes. Versions come from hosts and files of others.
const maxVersion = 128

// ParseVersion reads a full SemVer version, with or without a leading "v".
func ParseVersion(s string) (*semver.Version, error) {
	if len(s) > maxVersion {
		return nil, fmt.Errorf("cannot read a version of %d bytes", len(s))
	}
	v, err := semver.StrictNewVersion(strings.TrimPrefix(s, "v"))
	if err != nil {
		return nil, fmt.Errorf("cannot read version %q: %w", s, err)
	}
	return v, nil
}

// Normal returns the version as it is written everywhere in this program: SemVer without "v".
func Normal(s string) (string, error) {
	v, err := ParseVersion(s)
	if err != nil {
		return "", err
	}
	return v.String(), nil
}

// SameVersion reports whether two texts name the same version. A text that is no version equals nothing.
func SameVersion(a, b string) bool {
	x, errA := Normal(a)
	y, errB := Normal(b)
	return errA == nil && errB == nil && x == y
}

// Compare orders two versions by SemVer precedence: -1, 0 or 1. Build metadata does not count.
func Compare(a, b string) (int, error) {
	x, errA := ParseVersion(a)
	y, errB := ParseVersion(b)
	if err := errors.Join(errA, errB); err != nil {
		return 0, err
	}
	return x.Compare(y), nil
}

// ToDebian writes a version as the project's packages write it: a pre-release sorts before its release
// only behind "~" (K7).
func ToDebian(v string) (string, error) {
	p, err := ParseVersion(v)
	if err != nil {
		return "", err
	}
	d := fmt.Sprintf("%d.%d.%d", p.Major(), p.Minor(), p.Patch())
	if p.Prerelease() != "" {
		d += "~" + p.Prerelease()
	}
	if p.Metadata() != "" {
		d += "+" + p.Metadata()
	}
	return d, nil
}

// FromDebian finds the version that a Debian version stands for: "0.2.0~rc.1", "0.2.0~rc1", "1:0.2.0~rc.1-2" and
// "0.2.0-rc.1" are all 0.2.0-rc.1 (K7). It errs rather than guesses on any other suffix.
func FromDebian(d string) (string, error) {
	if len(d) > maxVersion {
		return "", fmt.Errorf("cannot read a Debian version of %d bytes", len(d))
	}
	p, err := version.Parse(d)
	if err != nil {
		return "", fmt.Errorf("cannot read Debian version %q: %w", d, err)
	}
	upstream := p.Version
	if _, ok := prerelease(p.Revision); ok {
		upstream += "-" + p.Revision // written like SemVer: no Debian revision is called "rc.1"
	}
	core, meta, _ := strings.Cut(upstream, "+")
	core, pre, found := strings.Cut(strings.Replace(core, "~", "-", 1), "-")
	out := core
	if found {
		pre, found = prerelease(pre)
		if !found {
			return "", fmt.Errorf("cannot tell which version Debian version %q stands for", d)
		}
		out += "-" + pre
	}
	if meta != "" {
		out += "+" + meta
	}
	if _, err := ParseVersion(out); err != nil {
		return "", fmt.Errorf("cannot tell which version Debian version %q stands for: %w", d, err)
	}
	return out, nil
}

// prerelease reads "rc.1", "rc1", "rc" and the same of alpha and beta, and returns them in SemVer's form.
func prerelease(s string) (string, bool) {
	for _, word := range []string{"alpha", "beta", "rc"} {
		rest, ok := strings.CutPrefix(s, word)
		if !ok {
			continue
		}
		if rest == "" {
			return word, true
		}
		number := strings.TrimPrefix(rest, ".")
		if !isNumber(number) {
			return "", false
		}
		return word + "." + number, true
	}
	return "", false
}

// isNumber reports whether s is a decimal number without leading zeros.
func isNumber(s string) bool {
	if s == "" || (len(s) > 1 && s[0] == '0') {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// CompareDebian orders two Debian versions as dpkg does: negative, 0 or positive.
func CompareDebian(a, b string) (int, error) {
	x, errA := version.Parse(a)
	y, errB := version.Parse(b)
	if err := errors.Join(errA, errB); err != nil {
		return 0, fmt.Errorf("cannot compare Debian versions %q and %q: %w", a, b, err)
	}
	return version.Compare(x, y), nil
}

// OrderAgrees returns an error unless dpkg and SemVer agree on which of two Debian versions is newer (K7). A new
// packaging of the same version is no disagreement.
func OrderAgrees(from, to string) error {
	debian, err := CompareDebian(from, to)
	if err != nil {
		return err
	}
	a, errA := FromDebian(from)
	b, errB := FromDebian(to)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	sem, err := Compare(a, b)
	if err != nil {
		return err
	}
	if sem == 0 || (sem < 0 && debian < 0) || (sem > 0 && debian > 0) {
		return nil
	}
	return fmt.Errorf("dpkg and SemVer disagree on which is newer: package versions %s and %s, program versions %s and %s",
		from, to, a, b)
}
