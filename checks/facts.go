// Package checks knows which fixed command yields which fact, and which facts make which finding.
// It is handed a Runner and never knows how a host is reached.
package checks

import (
	"context"
	"errors"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Runner runs several commands on one host in one exec.
type Runner interface {
	RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error)
}

// ErrNotGathered is the error of a fact that nobody asked for.
var ErrNotGathered = errors.New("not gathered")

// ErrNoAgent is the error of Facts.Agent on a host where kibo-agent is not installed.
var ErrNoAgent = errors.New("kibo-agent is not installed")

// ErrNotInstalled is the error of PartFacts.Version where the part's program is not there.
var ErrNotInstalled = errors.New("not installed")

// Fact is something known about a host, or the reason why it is not. The zero value is unknown.
type Fact[T any] struct {
	value T
	err   error
	known bool
}

// Known makes a known fact.
func Known[T any](v T) Fact[T] { return Fact[T]{value: v, known: true} }

// Unknown makes an unknown fact with its reason.
func Unknown[T any](err error) Fact[T] { return Fact[T]{err: err} }

// Get returns the value, or the reason why it is not known.
func (f Fact[T]) Get() (T, error) {
	if f.known {
		return f.value, nil
	}
	if f.err != nil {
		return f.value, f.err
	}
	return f.value, ErrNotGathered
}

// Facts is what one exec on one host tells. Host facts only: what ctrl says of nodes is Nodes.
type Facts struct {
	Host      string
	Clock     Fact[time.Time]     // the host's clock when the facts were read
	Skew      Fact[time.Duration] // how far the host's clock is ahead of the operator's, less the time the answer took; by Gather
	Boot      Fact[string]        // boot id
	Machine   Fact[string]        // machine id
	OS        Fact[string]        // PRETTY_NAME of /etc/os-release
	Arch      Fact[string]        // dpkg architecture of the host
	Sudo      Fact[bool]          // commands can run as root
	DpkgAudit Fact[string]        // output of dpkg --audit; empty is clean
	Packages  Fact[[]Package]     // the kibotos packages and kibo-agent, as dpkg knows them; absent ones are left out
	Parts     []PartFacts         // one for each part that the inventory gives to the host, in part order
	VMMs      Fact[[]VMM]         // sorted by unit
	Agent     Fact[gate.Status]
	Staged    Fact[Staged]
	Disk      Fact[[]Disk]
	Runs      Fact[string] // id of the unfinished run recorded on this host (ctrl host only), empty if none
}

// Package is one Debian package on a host.
type Package struct {
	Name    string
	Version string
	State   string // dpkg's status word: only "installed" counts
	Held    bool
}

// PartFacts is what a host tells of one part that it runs.
type PartFacts struct {
	Part     release.Part
	Version  Fact[string] // SemVer of the installed binary's `version --json`; ErrNotInstalled if there is no such program
	Revision Fact[string] // source revision it was built from, empty if it does not say (K2)
	Unit     Fact[Unit]
	Runtime  Fact[string] // node only: id of the installed VM runtime (K32)
}

// Unit is the state of a systemd unit.
type Unit struct {
	Name         string
	Load         string // loaded, not-found, masked …
	Active       string // active, inactive, failed, activating …
	Sub          string // running, dead, auto-restart …
	Result       string // success, exit-code, timeout, start-limit-hit …
	MainPID      int
	Restarts     int
	Since        time.Time // when it last became active; zero if never
	Stale        bool      // the running program's file was replaced since it started
	ExecOverride bool      // a drop-in overrides ExecStart (K56)
	Processes    int       // processes in the unit's control group
}

// Running reports whether the unit is up with a main process.
func (u Unit) Running() bool { return u.Active == "active" && u.MainPID > 0 }

// Stopped reports whether nothing of the unit is left: not merely "not active".
func (u Unit) Stopped() bool {
	return (u.Active == "inactive" || u.Active == "failed") && u.MainPID == 0 && u.Processes == 0
}

// Down reports whether the unit has no main process and is not about to get one. Processes that are meant to outlive
// it, as node's data plane, may be left: Stopped tells.
func (u Unit) Down() bool {
	return (u.Active == "inactive" || u.Active == "failed") && u.MainPID == 0
}

// VMM is one virtual machine's process: the same unit, process and start time means the same VM (K41).
type VMM struct {
	Unit  string `json:"unit"`
	PID   int    `json:"pid"`
	Start string `json:"start"` // ExecMainStartTimestampMonotonic, microseconds since boot
}

// Staged is the staging directory of the target on a host.
type Staged struct {
	Dir     string
	Exists  bool
	Debs    map[string]string       // file name → sha256 of what lies there
	Marker  bool                    // unpacking was completed by us
	Version map[release.Part]string // what each unpacked program says of itself
	Failed  map[release.Part]string // unpacked, but it does not say its version: why
	Others  []string                // whatever else lies in the staging directory beside Dir
}

// Disk is free space where something is going to be written.
type Disk struct {
	Path  string
	Free  int64 // bytes
	Files int64 // free inodes
}

// NodeRow is one line of `kibo node list`, read by column names.
type NodeRow struct {
	Name      string
	State     string // READY, DRAINING, DRAINED, …
	Release   string // SemVer without "v"
	Instances int    // -1 where the column is missing
	Commands  int    // running lifecycle commands; -1 where the column is missing
	Transfers int    // running Transfers; -1 where the column is missing
	Unready   string // anything else that ctrl says of why it is not ready, for people
}

// Finding is the outcome of a check on a host.
type Finding struct {
	Check  string `json:"check"` // id, e.g. "deb-arch"
	Host   string `json:"host,omitempty"`
	Part   string `json:"part,omitempty"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`             // one sentence
	Remedy string `json:"remedy,omitempty"` // what to do or to type
}

// Level is how a finding counts. Unknown blocks.
type Level string

// Levels of a finding.
const (
	Pass        Level = "pass"
	Warn        Level = "warn"
	Block       Level = "block"
	UnknownFact Level = "unknown"
)

// Blocks reports whether a finding of this level stops an upgrade.
func (l Level) Blocks() bool { return l == Block || l == UnknownFact || l == "" }
