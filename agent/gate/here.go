package gate

import (
	"slices"
	"strings"
	"time"
)

// Here is what a host knows of itself at the moment a window is judged. The zero value knows nothing: a window
// that is bound to something unknown is closed.
type Here struct {
	Now       time.Time
	MachineID string        // as in /etc/machine-id
	BootID    string        // of the kernel's present boot
	Up        time.Duration // since boot, sleep included, by a clock that nobody can set
	Holds     []Hold        // of people on this host
}

// Decide says whether the request may go through now. The file and the error are what reading the allow-file
// gave; any error is a closed gate. A hold comes first, whatever the file says. A window ends at
// now >= NotAfter (Z2) and, where it names operations, packages, checksums, a run, a plan or a machine,
// permits nothing else: one that names packages permits an install or removal only of those, and one that
// names checksums permits an install only of .debs whose checksum is known and listed.
func (h Here) Decide(f AllowFile, err error, req Request) Verdict {
	if bad := req.Check(); bad != nil {
		return Closed(bad)
	}
	if held := h.held(req); held != nil {
		return Closed(held)
	}
	if err != nil {
		return Closed(err)
	}
	for _, rule := range []func(Here, AllowFile, Request) error{
		bindsMachine, inTime, inBoot, bindsOperation, bindsPackages, bindsSHA256, bindsRun,
	} {
		if err := rule(h, f, req); err != nil {
			return Closed(err)
		}
	}
	return Verdict{Open: true, Code: CodeOpen, Reason: "open until " + Clock(f.NotAfter) + by(f)}
}

// held denies while a person on the host says no, except for what brings a half-done host back.
func (h Here) held(req Request) error {
	if len(h.Holds) == 0 || GivesBack(req.Operation) {
		return nil
	}
	all := make([]string, 0, len(h.Holds))
	for _, hold := range h.Holds {
		all = append(all, hold.Words())
	}
	return Deny(CodeHeld, "%s", strings.Join(all, "; "))
}

// GivesBack reports whether the operation ends a disruption. A hold or lock that appears half-way must not keep
// a host down.
func GivesBack(operation string) bool {
	return slices.Contains([]string{OpStart, OpCancelDrain}, operation)
}

func bindsMachine(h Here, f AllowFile, _ Request) error {
	switch {
	case f.MachineID == "" || f.MachineID == h.MachineID:
		return nil
	case h.MachineID == "":
		return Deny(CodeOtherMachine, "the window is for machine %s, and this host does not know its own id", f.MachineID)
	}
	return Deny(CodeOtherMachine, "the window is for machine %s; this is %s", f.MachineID, h.MachineID)
}

func inTime(h Here, f AllowFile, _ Request) error {
	end := time.Unix(f.NotAfter, 0)
	switch {
	case f.NotAfter <= 0:
		return Deny(CodeNoEnd, "the allow-file has no notAfter, so it would never end")
	case !h.Now.Before(end):
		return Deny(CodeExpired, "the window ended at %s; it is %s now", Clock(f.NotAfter), Clock(h.Now.Unix()))
	case end.Sub(h.Now) > MaxWindow, time.Unix(f.RenewUntil, 0).Sub(h.Now) > MaxWindow:
		return Deny(CodeTooFar, "the window ends at %s, more than %d days from now", Clock(max(f.NotAfter, f.RenewUntil)), int(MaxWindow.Hours()/24))
	case h.Now.Unix() < f.NotBefore:
		return Deny(CodeNotYet, "the window begins at %s; it is %s now", Clock(f.NotBefore), Clock(h.Now.Unix()))
	}
	return nil
}

// inBoot ends the window also by the clock that nobody can set, for as long as the host is in the boot in which
// the window was placed: setting the time of day back does not prolong it. After a reboot only the time of day
// is left, and the latest time the host has seen.
func inBoot(h Here, f AllowFile, _ Request) error {
	switch {
	case f.BootID == "":
		return nil
	case h.BootID == "":
		return Deny(CodeUnreadable, "the window was placed in boot %s, and this host does not know its own", f.BootID)
	case h.BootID != f.BootID:
		return nil
	case h.Up >= time.Duration(f.BootUntil)*time.Second:
		return Deny(CodeExpired, "the window was over %d seconds after boot, %d ago, whatever the clock says",
			f.BootUntil, int64(h.Up/time.Second)-f.BootUntil)
	}
	return nil
}

func bindsRun(_ Here, f AllowFile, req Request) error {
	if req.Operation == "" {
		return nil // asks for any window
	}
	switch {
	case f.Run != "" && f.Run != req.Run:
		return Deny(CodeOtherRun, "the window is for run %s, not %s", f.Run, orNobody(req.Run))
	case f.Plan != "" && f.Plan != req.Plan:
		return Deny(CodeOtherPlan, "the window is for plan %s, not %s", f.Plan, orNobody(req.Plan))
	}
	return nil
}

func orNobody(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
