// Package command says what a command on a host is: its words, as whom it runs, what it may
// change, and how it is quoted and shown. Values only: nothing here can run anything.
package command

import "time"

// Effect is how far a command reaches. The zero value is not an effect: whatever does not
// say that it only reads is treated as changing something.
type Effect string

// Effects, from harmless to felt by customers.
const (
	Reads    Effect = "reads"    // looks only
	Stages   Effect = "stages"   // writes inside the staging directory only
	Changes  Effect = "changes"  // changes the host
	Disrupts Effect = "disrupts" // stops or restarts a service
)

// Users a command can run as. Any other value is a user name on the host (sudo -u).
const (
	Login = ""     // the user that logged in
	Root  = "root" // through become
)

// Command is one program call on a host.
type Command struct {
	Argv    []string      `json:"argv"`
	As      string        `json:"as,omitempty"`      // Login, Root or a user name
	Effect  Effect        `json:"effect"`            // what it may do
	Stdin   []byte        `json:"stdin,omitempty"`   // small; large files go through Upload
	Timeout time.Duration `json:"timeout,omitempty"` // 0: the runner's default
}

// Result is how a command ended on the host. A Result exists only if the command was started and its
// exit status is known; everything else is an error of the transport.
type Result struct {
	Stdout    []byte
	Stderr    []byte
	Exit      int  // 0..255; 128+n if killed by signal n
	Truncated bool // output was longer than the runner keeps
	Elapsed   time.Duration
}

// Batch is several commands in one exec. Each has its own Result, in order. With StopOnFailure the
// commands after the first non-zero exit are not run and have no Result.
type Batch struct {
	Commands      []Command
	StopOnFailure bool
}
