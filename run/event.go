// Package run walks a Plan block by block and step by step: observe, then act. It journals what it does,
// verifies on the hosts, and can go on where an earlier walk stopped.
package run

import (
	"time"

	"github.com/kibotos/kibo-rollout/plan"
)

// Event is the one type behind the terminal view, JSON lines, the journal, the report and the exit code.
type Event struct {
	Seq   int       `json:"seq"`
	Time  time.Time `json:"time"`
	Run   string    `json:"run"`
	Kind  EventKind `json:"kind"`
	Block string    `json:"block,omitempty"`
	Step  string    `json:"step,omitempty"`
	Host  string    `json:"host,omitempty"`
	Title string    `json:"title,omitempty"`
	// Text is evidence, a reason, a progress note or the command line, by kind. Remote text in it is already safe to print.
	Text    string        `json:"text,omitempty"`
	Next    string        `json:"next,omitempty"` // what to type next, with failures
	Attempt int           `json:"attempt,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
	Record  string        `json:"record,omitempty"` // something taken: "drain", "window", "stage"
	Sent    int64         `json:"sent,omitempty"`   // bytes, of uploads
	Size    int64         `json:"size,omitempty"`
	VMMs    []VMMProof    `json:"vmms,omitempty"`
	Plan    *plan.Plan    `json:"plan,omitempty"` // with run-started
}

// EventKind says what an Event reports.
type EventKind string

// Kinds of events. Those marked "not journaled" are for viewers only.
const (
	RunStarted   EventKind = "run-started"
	RunResumed   EventKind = "run-resumed"
	BlockStarted EventKind = "block-started"
	BlockSkipped EventKind = "block-skipped" // Text: evidence that it is done already
	BlockHeld    EventKind = "block-held"    // Text: who holds the host; it is gone around and come back to
	BlockDone    EventKind = "block-done"
	BlockFailed  EventKind = "block-failed"
	StepStarted  EventKind = "step-started" // on disk before anything is done
	StepSkipped  EventKind = "step-skipped" // Text: evidence
	StepDone     EventKind = "step-done"    // Text: evidence
	StepUnknown  EventKind = "step-unknown" // Text: why its outcome is not known: it may go on on the host
	StepFailed   EventKind = "step-failed"  // Text: reason; Next
	Command      EventKind = "command"      // Text: the command as run
	Progress     EventKind = "progress"     // not journaled; Text or Sent/Size
	Taken        EventKind = "taken"        // Record: what must be given back
	GivenBack    EventKind = "given-back"
	Continuity   EventKind = "continuity"    // VMMs: the proof for Host
	RunAbandoned EventKind = "run-abandoned" // given up on purpose; Text: what it leaves
	RunDone      EventKind = "run-done"
	RunStopped   EventKind = "run-stopped" // Text: why; Next: how to go on
)

// VMMProof is one VM's process before and after.
type VMMProof struct {
	Unit   string `json:"unit"`
	Before string `json:"before"` // "pid 4711 since 123456789", empty if it was not there
	After  string `json:"after"`
	Same   bool   `json:"same"`
	Ended  bool   `json:"ended,omitempty"` // it was the same after the change, and was ended by somebody since
}
