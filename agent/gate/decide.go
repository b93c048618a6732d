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
	Run       string            `json:",omitempty"` // the run that asks, if any
	Plan      string            `json:",omitempty"` // digest of the plan it follows, if any
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
	for what, name := range map[string]string{"run": r.Run, "plan": r.Plan} {
		if err := CheckName(what, name); name != "" && err != nil {
			return Deny(CodeBadRequest, "%v", err)
		}
	}
	return nil
}

// Decide is Here.Decide on a host of which nothing but the time is known.
func Decide(now time.Time, f AllowFile, err error, req Request) Verdict {
	return Here{Now: now}.Decide(f, err, req)
}

func bindsOperation(_ Here, f AllowFile, req Request) error {
	if req.Operation == "" || len(f.Operations) == 0 || slices.Contains(f.Operations, req.Operation) {
		return nil
	}
	return Deny(CodeOtherOperation, "the window permits %s, not %s", strings.Join(f.Operations, ", "), req.Operation)
}

func bindsPackages(_ Here, f AllowFile, req Request) error {
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

func bindsSHA256(_ Here, f AllowFile, req Request) error {
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
