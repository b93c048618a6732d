package gate

import (
	"errors"
	"fmt"
)

// Codes are the answers a gate can give: one for open, one for every way of being closed. They are an
// interface: programs compare them, people read the sentence beside them.
const (
	CodeOpen = "open"

	CodeMissing     = "missing"      // no allow-file: the normal closed gate (Z5)
	CodeSymlink     = "symlink"      // the file, or a directory above it, is a symbolic link
	CodeNotRegular  = "not-regular"  // a directory, a device, a pipe
	CodeOwner       = "owner"        // not root:root
	CodeMode        = "mode"         // not exactly 0644
	CodeHardLink    = "hard-link"    // the file has a second name somewhere
	CodeDirOwner    = "dir-owner"    // a directory above it does not belong to root
	CodeDirWritable = "dir-writable" // a directory above it is writable for others than root
	CodeUnreadable  = "unreadable"   // any other trouble reading it

	CodeTooBig  = "too-big"  // more than MaxSize bytes
	CodeNotJSON = "not-json" // not one JSON object
	CodeBadKey  = "bad-key"  // unknown, repeated or wrongly spelt key
	CodeNoEnd   = "no-end"   // no notAfter
	CodeBad     = "bad-value"
	CodeUnit    = "bad-unit" // notAfter in milliseconds or the like
	CodeTooFar  = "too-far"  // a window that ends later than MaxWindow from now

	CodeExpired        = "expired"
	CodeNotYet         = "not-yet"
	CodeOtherOperation = "other-operation"
	CodeOtherPackage   = "other-package"
	CodeOtherVersion   = "other-version"
	CodeOtherSHA256    = "other-sha256"
	CodeOtherMachine   = "other-machine" // the window is for another host
	CodeOtherRun       = "other-run"     // for another run
	CodeOtherPlan      = "other-plan"    // for another plan
	CodeOtherWindow    = "other-window"  // somebody else's window is there; only for renewing
	CodeNoLease        = "no-lease"      // a window that cannot be renewed
	CodeBadRequest     = "bad-request"   // the question itself makes no sense
	CodeInhibited      = "inhibited"     // somebody holds a block lock on shutdown (Z7)
	CodeHeld           = "held"          // a person on the host says no
	CodeClockBack      = "clock-back"    // the clock is behind a time this host has already seen
	CodeUsed           = "used"          // a single-use window that another operation took first
)

// Denial is an error with one of the codes. Reason is one sentence for people, without a full stop.
type Denial struct {
	Code   string
	Reason string
}

// Error is the sentence.
func (d *Denial) Error() string { return d.Reason }

// Deny makes a Denial.
func Deny(code, format string, args ...any) *Denial {
	return &Denial{Code: code, Reason: fmt.Sprintf(format, args...)}
}

// Verdict is the gate's answer. The zero value is closed.
type Verdict struct {
	Open   bool   `json:"open"`
	Code   string `json:"code"`
	Reason string `json:"reason"` // one sentence, without a full stop
}

// Closed turns any error into a closed gate: an error is a deny with the error in the reason.
func Closed(err error) Verdict {
	var d *Denial
	if errors.As(err, &d) {
		return Verdict{Code: d.Code, Reason: d.Reason}
	}
	return Verdict{Code: CodeUnreadable, Reason: err.Error()}
}
