// Package gate is the decision whether a state-changing step may go through on a host: the allow-file's
// format, its strict reading, and Decide. Standard library only; the only code that operator side and
// agent share. An error anywhere here is a deny with the error in the reason.
package gate

// DefaultPath is where the allow-file lives (Z3).
const DefaultPath = "/var/lib/kibo-agent/allow.json"

// AllowFile is the permission in the file, section 5 of the design. Only NotAfter is required.
type AllowFile struct {
	NotAfter   int64             `json:"notAfter"`             // Unix seconds; expired at now >= NotAfter (Z2)
	NotBefore  int64             `json:"notBefore,omitempty"`  // Unix seconds
	ID         string            `json:"id,omitempty"`         // of the window, for closing just this one
	Operations []string          `json:"operations,omitempty"` // none: every operation
	Packages   map[string]string `json:"packages,omitempty"`   // name → Debian version; none: every package
	SHA256     []string          `json:"sha256,omitempty"`     // of the .debs that may be installed; none: any
	SingleUse  bool              `json:"singleUse,omitempty"`  // consumed by the first operation (Z3)
	MachineID  string            `json:"machineId,omitempty"`  // the only host it is for, by /etc/machine-id
	Run        string            `json:"run,omitempty"`        // only jobs of this run
	Plan       string            `json:"plan,omitempty"`       // only jobs that follow the plan with this digest
	BootID     string            `json:"bootId,omitempty"`     // of the boot it was placed in
	BootUntil  int64             `json:"bootUntil,omitempty"`  // seconds after that boot; the end by a clock that nobody sets
	RenewUntil int64             `json:"renewUntil,omitempty"` // Unix seconds; a lease: NotAfter may be moved up to here
	IssuedBy   string            `json:"issuedBy,omitempty"`
	Reason     string            `json:"reason,omitempty"`
}

// Operations a gate knows.
const (
	OpInstall     = "install"
	OpRemove      = "remove"
	OpStop        = "stop"
	OpStart       = "start"
	OpMigrate     = "migrate"
	OpConfig      = "config"
	OpDrain       = "drain"
	OpCancelDrain = "cancel-drain"
	OpReboot      = "reboot"
)
