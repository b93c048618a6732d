package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MaxWindow is how far ahead of now a window may end. A file that claims more is a mistake (a wrong unit, a
// wrong year), and a gate that stays open for months is none.
const MaxWindow = 14 * 24 * time.Hour

// Operations lists every operation a gate knows.
func Operations() []string {
	return []string{OpInstall, OpRemove, OpStop, OpStart, OpMigrate, OpConfig, OpDrain, OpCancelDrain, OpReboot}
}

// Request is what somebody wants to do. The empty Request asks whether any window is open at all.
type Request struct {
	Operation string            // "" only for that question
	Packages  map[string]string // name → Debian version: to be installed, or, for OpRemove, being removed
	SHA256    []string          // of the .debs to be installed, lower-case hex
}

// Check reports what is wrong with the request itself as a *Denial with CodeBadRequest, or nil.
func (r Request) Check() error {
	if r.Operation != "" {
		if err := operation(r.Operation); err != nil {
			return Deny(CodeBadRequest, "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Packages)) {
		if err := CheckPackage(name, r.Packages[name]); err != nil {
			return Deny(CodeBadRequest, "%v", err)
		}
	}
	for _, sum := range r.SHA256 {
		if err := digest(sum); err != nil {
			return Deny(CodeBadRequest, "%v", err)
		}
	}
	return nil
}

// Decide says whether the request may go through now. The file and the error are what reading the allow-file
// gave; any error is a closed gate. A window ends at now >= NotAfter (Z2) and, where it names operations,
// packages or checksums, permits nothing else: one that names packages permits an install or removal only of
// those, and one that names checksums permits an install only of .debs whose checksum is known and listed.
func Decide(now time.Time, f AllowFile, err error, req Request) Verdict {
	if err != nil {
		return Closed(err)
	}
	for _, rule := range []func(time.Time, AllowFile, Request) error{
		func(_ time.Time, _ AllowFile, r Request) error { return r.Check() },
		inTime, bindsOperation, bindsPackages, bindsSHA256,
	} {
		if err := rule(now, f, req); err != nil {
			return Closed(err)
		}
	}
	return Verdict{Open: true, Code: CodeOpen, Reason: "open until " + Clock(f.NotAfter) + by(f)}
}

func inTime(now time.Time, f AllowFile, _ Request) error {
	end := time.Unix(f.NotAfter, 0)
	switch {
	case f.NotAfter <= 0:
		return Deny(CodeNoEnd, "the allow-file has no notAfter, so it would never end")
	case !now.Before(end):
		return Deny(CodeExpired, "the window ended at %s; it is %s now", Clock(f.NotAfter), Clock(now.Unix()))
	case end.Sub(now) > MaxWindow:
		return Deny(CodeTooFar, "the window ends at %s, more than %d days from now", Clock(f.NotAfter), int(MaxWindow.Hours()/24))
	case now.Unix() < f.NotBefore:
		return Deny(CodeNotYet, "the window begins at %s; it is %s now", Clock(f.NotBefore), Clock(now.Unix()))
	}
	return nil
}

func bindsOperation(_ time.Time, f AllowFile, req Request) error {
	if req.Operation == "" || len(f.Operations) == 0 || slices.Contains(f.Operations, req.Operation) {
		return nil
	}
	return Deny(CodeOtherOperation, "the window permits %s, not %s", strings.Join(f.Operations, ", "), req.Operation)
}

func bindsPackages(_ time.Time, f AllowFile, req Request) error {
	if len(f.Packages) == 0 {
		return nil
	}
	if len(req.Packages) == 0 && aboutPackages(req.Operation) {
		return Deny(CodeOtherPackage, "the window permits only %s, and the request names no package", sortedPackages(f.Packages))
	}
	for _, name := range slices.Sorted(maps.Keys(req.Packages)) {
		want, ok := f.Packages[name]
		if !ok {
			return Deny(CodeOtherPackage, "the window permits only %s, not %s", sortedPackages(f.Packages), name)
		}
		if got := req.Packages[name]; got != want {
			return Deny(CodeOtherVersion, "the window permits %s %s, not %s", name, want, got)
		}
	}
	return nil
}

func bindsSHA256(_ time.Time, f AllowFile, req Request) error {
	if len(f.SHA256) == 0 {
		return nil
	}
	if req.Operation == OpInstall && len(req.SHA256) == 0 {
		return Deny(CodeOtherSHA256, "the window permits only .debs with the checksums it lists, and the request names none")
	}
	for _, sum := range req.SHA256 {
		if !slices.Contains(f.SHA256, sum) {
			return Deny(CodeOtherSHA256, "the window does not permit a .deb with SHA-256 %s", sum)
		}
	}
	return nil
}

func aboutPackages(op string) bool { return op == OpInstall || op == OpRemove }

func sortedPackages(m map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+" "+m[name])
	}
	return strings.Join(all, ", ")
}

// Clock writes Unix seconds as every reason does: UTC, to the second.
func Clock(unix int64) string { return time.Unix(unix, 0).UTC().Format("2006-01-02 15:04:05 UTC") }

func by(f AllowFile) string {
	var s string
	if f.IssuedBy != "" {
		s += ", placed by " + f.IssuedBy
	}
	if f.Reason != "" {
		s += fmt.Sprintf(" (%s)", f.Reason)
	}
	return s
}
