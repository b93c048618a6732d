package gate

import "time"

// Status is what `kibo-agent status --output json` prints: the host's answer on one page.
type Status struct {
	Version    string      `json:"version"`
	Open       bool        `json:"open"`             // a window is open now for at least one operation
	Code       string      `json:"code"`             // enumerated reason
	Reason     string      `json:"reason"`           // one sentence
	Window     *AllowFile  `json:"window,omitempty"` // the allow-file, if there is a readable one
	Layers     []Layer     `json:"layers"`           // enforcement on this host
	Inhibitors []Inhibitor `json:"inhibitors,omitempty"`
	Holds      []Hold      `json:"holds,omitempty"`   // people on the host who say no
	Ungated    []Ungated   `json:"ungated,omitempty"` // changes that went past the gate, until acknowledged
	Jobs       []Job       `json:"jobs,omitempty"`    // running, and those of the last day
}

// Layer is one place where the gate is enforced: "apt" or "dpkg".
type Layer struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
	Reason string `json:"reason,omitempty"`
}

// Ungated is one change of a gated package that no job and no hook let through. Was and Now are Debian versions;
// "" is not installed. Package "unknown" says that nobody can tell, with the reason in Now.
type Ungated struct {
	Package string    `json:"package"`
	Was     string    `json:"was"`
	Now     string    `json:"now"`
	Noticed time.Time `json:"noticed"`
}

// Inhibitor is one lock that logind lists.
type Inhibitor struct {
	What string `json:"what"`
	Who  string `json:"who"`
	Why  string `json:"why"`
	Mode string `json:"mode"`
	UID  uint32 `json:"uid"`
	PID  uint32 `json:"pid"`
}

// Job states.
const (
	JobUnknown  = "unknown"  // no such job on this host
	JobDenied   = "denied"   // the gate said no: nothing was started
	JobBusy     = "busy"     // another job runs on this host: nothing was started
	JobRunning  = "running"  // started, not ended
	JobFinished = "finished" // ended; Exit says how
	JobLost     = "lost"     // ended without leaving an exit status (power cut, kill)
)

// Job is one command that outlives the connection, as `kibo-agent run` and `kibo-agent wait` print it with
// --output json.
type Job struct {
	Key       string    `json:"key"`
	State     string    `json:"state"`
	Exit      int       `json:"exit"` // of the command, only when finished
	Operation string    `json:"operation,omitempty"`
	Argv      []string  `json:"argv,omitempty"`
	Code      string    `json:"code,omitempty"`   // why denied
	Reason    string    `json:"reason,omitempty"` // one sentence
	Output    string    `json:"output,omitempty"` // tail of stdout and stderr, at most 64 KiB
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
}
