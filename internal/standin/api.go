package standin

import "time"

// ReportInterval is how often a node reports to ctrl.
const ReportInterval = 500 * time.Millisecond

// SilenceLimit is how long ctrl takes a node for connected after its last report.
const SilenceLimit = 5 * time.Second

// Op names a request to ctrl.
type Op string

// Requests that ctrl knows.
const (
	OpHello       Op = "hello"        // node → ctrl: I have started, take me (K4)
	OpReport      Op = "report"       // node → ctrl: I am alive, this is what I have
	OpBye         Op = "bye"          // node → ctrl: I am stopping
	OpList        Op = "list"         // kibo node list
	OpDrain       Op = "drain"        // kibo node drain
	OpCancelDrain Op = "cancel-drain" // kibo node cancel-drain
	OpSession     Op = "session"      // where is the node's data plane? (K34)
	OpResolve     Op = "resolve"      // gateway → ctrl: do you speak my interface?
)

// Request is one call to ctrl's API.
type Request struct {
	Op       Op        `json:"op"`
	Node     string    `json:"node,omitempty"`     // name of the node that is meant
	Version  string    `json:"version,omitempty"`  // of the caller, SemVer
	Revision string    `json:"revision,omitempty"` // source revision of the caller
	Level    int       `json:"level,omitempty"`    // interface level that a gateway needs
	Load     *NodeLoad `json:"load,omitempty"`     // with hello and report
	Session  string    `json:"session,omitempty"`  // with report and bye: one start of a node
}

// Response is ctrl's answer.
type Response struct {
	Error string    `json:"error,omitempty"` // why the request was refused; empty if it was not
	Nodes []NodeRow `json:"nodes,omitempty"` // with list, sorted by name
	Plane string    `json:"plane,omitempty"` // with session: where to connect
}

// NodeLoad is what a node has at the moment.
type NodeLoad struct {
	Instances int `json:"instances"` // adopted and running
	Failed    int `json:"failed"`    // could not be adopted; their VMMs run on
	Commands  int `json:"commands"`  // running lifecycle commands
	Transfers int `json:"transfers"` // unfinished Transfers
	Volumes   int `json:"volumes"`   // detached Volumes: they keep a drained node in DRAINING (K42)

	// Plane is where the data plane of this version is reached: ADDR:PORT, or the unit while that is not known.
	Plane string `json:"plane,omitempty"`
}

// NodeRow is one line of `kibo node list`.
type NodeRow struct {
	Name    string `json:"name"`
	State   string `json:"state"`   // READY, DRAINING, DRAINED, NOT-READY
	Release string `json:"release"` // SemVer of the node program, as of its last connection
	Drain   bool   `json:"drain"`   // drained on purpose, whatever the state
	Reason  string `json:"reason,omitempty"`
	NodeLoad
}

// Node states.
const (
	StateReady    = "READY"
	StateDraining = "DRAINING"
	StateDrained  = "DRAINED"
	StateNotReady = "NOT-READY"
)
