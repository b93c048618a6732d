// Package plan holds the step tables and builds a Plan from hosts, facts and findings. Everything it yields is
// data: it can describe a command, and has no door to a host, a clock or a screen.
package plan

import (
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Mode is how an upgrade is walked.
type Mode string

// Modes. The tables are in rolling.go and its neighbours.
const (
	Rolling      Mode = "rolling"
	StopTheWorld Mode = "stop-the-world"
	Agents       Mode = "agent" // installs kibo-agent, no part
)

// Plan is an upgrade as an ordered list of blocks, with no choice left. It is what plan.json holds.
type Plan struct {
	Schema   int              `json:"schema"`
	ID       string           `json:"id"` // also the id of the run that applies it
	Mode     Mode             `json:"mode"`
	Why      string           `json:"why"` // the mode's reason in words (K1-K3)
	Target   release.Target   `json:"target"`
	Hosts    []Host           `json:"hosts"`
	Nodes    []string         `json:"nodes,omitempty"` // names at ctrl of every node that must be READY
	Blocks   []Block          `json:"blocks"`
	Clean    []Block          `json:"clean,omitempty"` // removal of the staging directories, after success and clean failure alike (K11)
	Findings []checks.Finding `json:"findings"`
	Notes    []string         `json:"notes,omitempty"` // what an operator must know before saying yes
}

// Host is one machine as the plan saw it.
type Host struct {
	Name     string         `json:"name"`
	Address  string         `json:"address"`
	Parts    []release.Part `json:"parts"`
	NodeName string         `json:"nodeName,omitempty"`
	Versions []PartVersion  `json:"versions"` // installed now
	VMMs     int            `json:"vmms"`
	StageDir string         `json:"stageDir"`
}

// PartVersion is a part and its version.
type PartVersion struct {
	Part    release.Part `json:"part"`
	Version string       `json:"version"` // SemVer, or "" if not installed
}

// Block is what is done to one host in one go: a node's whole replacement, say. Blocks of the same wave
// run at the same time; waves run in order. A failed block stops the walk after its wave.
type Block struct {
	ID      string `json:"id"` // "node-a/node"
	Title   string `json:"title"`
	Host    string `json:"host"`
	Node    string `json:"node,omitempty"` // its name at ctrl, of a node's block
	Wave    int    `json:"wave"`
	Steps   []Step `json:"steps"`
	Finally []Step `json:"finally,omitempty"` // run when any step of the block was begun, whatever happened
	Goal    *Cond  `json:"goal,omitempty"`    // holds: the whole block is done already
	Around  bool   `json:"around,omitempty"`  // while somebody holds the host, others go first (Z7)
	Stuck   string `json:"stuck,omitempty"`   // what is left as it is when the block fails, and what to do
}

// Step is one row: what makes it needless, what it does, and what proves that it is complete.
type Step struct {
	ID     string         `json:"id"` // "node-a/node/install"
	Title  string         `json:"title"`
	Host   string         `json:"host"`
	Effect command.Effect `json:"effect"`
	Skip   *Cond          `json:"skip,omitempty"` // holds before: nothing to do
	Act    []Action       `json:"act,omitempty"`
	Done   *Cond          `json:"done,omitempty"`   // must hold after, within Limit; nil: success of the actions is all
	Limit  time.Duration  `json:"limit,omitempty"`  // for the actions and, again, for Done
	Free   bool           `json:"free,omitempty"`   // asks whether somebody holds the host: if so, nothing was begun
	Only   *Cond          `json:"only,omitempty"`   // must hold, else the step is left out
	Now    string         `json:"now,omitempty"`    // what is true of the host once the step is done, for whoever finds it so
	Proves string         `json:"proves,omitempty"` // host whose VMMs are proved the same once the step is done
	If     string         `json:"if,omitempty"`     // only if this run took such a record for Of; else the step is left out (K35)
	Of     string         `json:"of,omitempty"`     // what the record is about: a node or a host
	Back   []Step         `json:"back,omitempty"`   // the way back when the actions say no and nothing was replaced (K60)
	Proof  string         `json:"proof,omitempty"`  // host whose VMMs are noted just before the actions (K41)
	Rule   string         `json:"rule,omitempty"`   // the contract's rules, e.g. "K23"
	OnFail string         `json:"onFail,omitempty"`
}

// Verb is what an action is.
type Verb string

// The verbs. One switch in run acts on them.
const (
	Exec   Verb = "exec"   // a command on a host
	Job    Verb = "job"    // a command on a host through the gate, outliving the connection
	Upload Verb = "upload" // a .deb to a host
	Grant  Verb = "grant"  // open a window
	Revoke Verb = "revoke" // close it
)

// Action is one verb with its data.
type Action struct {
	Verb    Verb            `json:"verb"`
	Host    string          `json:"host"`
	Command command.Command `json:"command,omitzero"` // exec, grant, revoke: as is; job: what the job runs
	Job     *JobSpec        `json:"job,omitempty"`
	Deb     *release.Deb    `json:"deb,omitempty"`    // upload
	Path    string          `json:"path,omitempty"`   // upload: where to
	Record  string          `json:"record,omitempty"` // what the journal remembers was taken (or, with Revoke, given back): RecordDrain …
	Of      string          `json:"of,omitempty"`     // what the record is about: a node or a host
	Expect  string          `json:"expect,omitempty"` // how the output is judged besides exit 0: see expect.go
}

// JobSpec is what the gate is asked for.
type JobSpec struct {
	Step      string            `json:"step"` // the step's id: with run id and attempt it makes the job's key
	Operation string            `json:"operation"`
	Packages  map[string]string `json:"packages,omitempty"`
	SHA256    []string          `json:"sha256,omitempty"`
}

// Runs ends the words of Step.Now where the service runs.
const Runs = " runs"

// What a run takes and has to give back.
const (
	RecordDrain  = "drain"
	RecordWindow = "window"
	RecordStage  = "stage"
)
