package run

import (
	"errors"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
)

// failure is why a step did not come to its end.
type failure struct {
	class             Class
	block, step, host string
	why, left, next   string
	cut               bool // the connection was lost: whether the command ran is not known
	open              bool // what was begun may go on on the host: its outcome is not known
	held              bool // somebody holds the host, and nothing was begun
}

// clean reports whether the hosts answered and it is known where things stand.
func (f *failure) clean() bool {
	return !f.open && (f.class == Failed || f.class == Blocked || f.class == GateClosed)
}

// stands says how things stand on the host: what this walk last made true there, and what the failed step leaves.
func (f *failure) stands(now, left string) {
	if f.left != "" {
		left = f.left
	}
	if now != "" && left != "" {
		now += "; "
	}
	f.left = now + left
}

// at says where it happened, once.
func (f *failure) at(b plan.Block, st plan.Step) *failure {
	if f.block == "" {
		f.block, f.step, f.host = b.ID, st.ID, st.Host
	}
	if f.left == "" {
		f.left = b.Stuck
	}
	return f
}

func (f *failure) outcome() Outcome {
	return Outcome{Class: f.class, Block: f.block, Step: f.step, Host: f.host, Why: f.why, Left: f.left, Next: f.next}
}

// failIf makes a failure of an error of the journal: what cannot be recorded is not done.
func (w *walk) failIf(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{class: Failed, why: "cannot keep the journal: " + err.Error()}
}

// lost makes a failure of a transport error.
func lost(err error) *failure {
	var e *remote.Error
	f := &failure{class: Unreachable, why: err.Error()}
	if errors.As(err, &e) {
		f.next = e.Next
		f.cut = e.Kind == remote.Lost
		if e.Kind == remote.TimedOut || e.Kind == remote.Refused || e.Kind == remote.BadTransfer || e.Kind == remote.Become {
			f.class = Failed
		}
	}
	return f
}
