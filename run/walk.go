package run

import (
	"context"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Fleet gives a live connection to a host of the inventory, dialing or re-dialing as needed.
type Fleet interface {
	Conn(ctx context.Context, host string) (remote.Conn, error)
}

// Journal keeps events. Append returns once the event is on disk; sync asks that whoever else keeps a copy has it too.
type Journal interface {
	Append(ctx context.Context, e Event, sync bool) error
}

// Source opens a .deb for reading.
type Source func(release.Deb) (io.ReaderAt, io.Closer, error)

// Config is everything that a walk needs from outside.
type Config struct {
	Plan    plan.Plan
	Fleet   Fleet
	Wants   map[string]checks.Want // by host: what to ask for
	CLIHost string                 // where the kibo command runs
	Nodes   command.Command        // lists the nodes there
	Settle  Question               // asks ctrl for unfinished objects; zero: cannot be asked
	Source  Source
	Journal Journal
	Observe func(Event)                          // called for every event, one at a time
	Part    bool                                 // hosts of the plan were left out: when this walk is done, the run is not
	Stop    <-chan struct{}                      // closed: finish the current command, then stop
	Now     func() time.Time                     // the operator's clock
	Pause   func(context.Context, time.Duration) // waits, or returns early when the context ends
	Past    Past                                 // of an earlier walk of the same plan
	Forks   int                                  // hosts at the same time, for reading; 0: 50
	Reads   bool                                 // walk only, keep no record (plan's own staging)
}

// Question is a read-only command on a host.
type Question struct {
	Host    string
	Command command.Command
}

// Outcome is how a walk ended.
type Outcome struct {
	Class   Class
	Block   string
	Step    string
	Host    string
	Why     string
	Left    string // what was left as it is
	Next    string // what to type, where the failure itself says so
	Changed bool   // something was changed by this walk
	Proofs  map[string][]VMMProof
}

// Class says why a walk ended; internal/cli maps it to an exit code.
type Class string

// Classes of outcomes.
const (
	Done        Class = "done"
	Failed      Class = "failed"      // stopped part-way, resumable
	Blocked     Class = "blocked"     // a target program or a check said no
	GateClosed  Class = "gate-closed" // the gate of a host said no
	Unreachable Class = "unreachable"
	Interrupted Class = "interrupted"
)

// walk is one walk under way.
type walk struct {
	Config
	emitting sync.Mutex // keeps events in order; never held together with mu
	seq      int

	mu      sync.Mutex
	done    map[string]bool   // steps that are done by the journal
	downs   map[string]string // by host: a unit that is stopped by now
	proved  map[string]bool   // by host: its VMMs were proved after its change
	notedBy map[string][]checks.VMM
	taken   map[string]bool
	tries   map[string]int
	changed bool
	locks   map[string]*sync.Mutex
}

// Walk walks the plan: blocks wave by wave, each block step by step. It returns an error only when the journal cannot be
// kept; everything that happens to the fleet is in the Outcome.
func Walk(ctx context.Context, c Config) (Outcome, error) {
	w := &walk{
		Config: c, seq: c.Past.Seq, notedBy: map[string][]checks.VMM{}, taken: map[string]bool{}, tries: map[string]int{},
		locks: map[string]*sync.Mutex{}, done: map[string]bool{}, downs: map[string]string{}, proved: map[string]bool{},
	}
	maps.Copy(w.done, c.Past.Done)
	maps.Copy(w.proved, c.Past.Proved)
	maps.Copy(w.notedBy, c.Past.Noted)
	maps.Copy(w.taken, c.Past.Taken)
	maps.Copy(w.tries, c.Past.Tries)
	if err := w.begin(ctx); err != nil {
		return Outcome{}, err
	}
	fail := w.blocks(ctx, c.Plan.Blocks)
	out := Outcome{Class: Done}
	if fail != nil {
		out = fail.outcome()
	}
	if fail == nil || fail.clean() {
		if f := w.blocks(context.WithoutCancel(ctx), c.Plan.Clean); f != nil && fail == nil {
			out = f.outcome()
		}
	}
	out.Changed = w.changed
	out.Proofs = w.proofs(context.WithoutCancel(ctx))
	return out, w.end(ctx, out)
}

func (w *walk) begin(ctx context.Context) error {
	kind := RunStarted
	if w.Past.Seq > 0 {
		kind = RunResumed
	}
	p := w.Plan
	return w.emit(ctx, Event{Kind: kind, Plan: &p, Title: string(p.Mode) + " upgrade to " + p.Target.Version}, true)
}

func (w *walk) end(ctx context.Context, out Outcome) error {
	e := Event{Kind: RunDone, Text: "every host is on " + w.Plan.Target.Version}
	if !out.Changed {
		e.Text = "nothing to do: " + e.Text
	}
	if w.Part {
		e = Event{Kind: RunStopped, Text: "the selected hosts are on " + w.Plan.Target.Version + "; others of the run are left"}
	}
	if out.Class != Done {
		e = Event{Kind: RunStopped, Block: out.Block, Step: out.Step, Host: out.Host, Text: out.Why, Next: out.Next}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return w.emit(ctx, e, true)
}

func (w *walk) stopped(ctx context.Context) bool {
	select {
	case <-w.Stop:
		return true
	default:
		return ctx.Err() != nil
	}
}

// emit numbers an event, keeps it, and shows it. Progress is shown only.
func (w *walk) emit(ctx context.Context, e Event, sync bool) error {
	w.emitting.Lock()
	defer w.emitting.Unlock()
	e.Time, e.Run = w.Now().UTC(), w.Plan.ID
	var err error
	if e.Kind != Progress {
		w.seq++
		e.Seq = w.seq
		if w.Journal != nil {
			err = w.Journal.Append(context.WithoutCancel(ctx), e, sync)
		}
	}
	if w.Observe != nil {
		w.Observe(e)
	}
	return err
}

// lock serialises actions on one host, since a host has one allow-file and one job at a time.
func (w *walk) lock(host string) func() {
	w.mu.Lock()
	m := w.locks[host]
	if m == nil {
		m = &sync.Mutex{}
		w.locks[host] = m
	}
	w.mu.Unlock()
	m.Lock()
	return m.Unlock
}
