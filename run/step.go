package run

import (
	"context"
	"fmt"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// step observes, then acts, then observes again.
func (w *walk) step(ctx context.Context, v *view, b plan.Block, st plan.Step) *failure {
	at := Event{Block: b.ID, Step: st.ID, Host: st.Host, Title: st.Title}
	if why, f := w.needless(ctx, v, st); f != nil || why != "" {
		if f != nil {
			return f
		}
		return w.skip(ctx, v, at, st, why)
	}
	if st.Free {
		return w.free(ctx, v, at, st)
	}
	if f := w.note(ctx, v, st); f != nil {
		return f
	}
	began := w.Now()
	at.Attempt = w.attempt(st.ID)
	at.Kind = StepStarted
	changes := st.Effect == command.Changes || st.Effect == command.Disrupts
	if err := w.emit(ctx, at, changes && len(st.Act) > 0); err != nil && !undoing(b) {
		return w.failIf(err)
	}
	evidence, f := w.act(ctx, at, st)
	for try := 1; f != nil && f.cut && !changes && try < quietTries; try++ { // reading and staging may be done again
		evidence, f = w.act(ctx, at, st)
	}
	if f != nil {
		v.forget()
		return f
	}
	if len(st.Act) > 0 {
		v.forget()
		w.mark(changes)
	}
	if st.Done != nil {
		if evidence, f = w.await(ctx, v, at, st); f != nil {
			return f
		}
	}
	w.after(ctx, v, st)
	at.Kind, at.Text, at.Took = StepDone, evidence, w.Now().Sub(began)
	return w.failIf(w.emit(ctx, at, false))
}

// needless says why a step has nothing to do, or "" if it has.
func (w *walk) needless(ctx context.Context, v *view, st plan.Step) (string, *failure) {
	if st.If != "" && !w.has(st.If, st.Of) {
		return "this run took no " + st.If + " of " + st.Of + ": left as it is", nil
	}
	if st.Only != nil {
		ans, f := w.judge(ctx, v, *st.Only)
		switch {
		case f != nil:
			return "", f
		case ans.Answer == plan.Unknown:
			return "", &failure{class: Failed, why: "cannot tell whether it may be done: " + ans.Why}
		case ans.Answer == plan.No:
			return "left out: " + ans.Why, nil
		}
	}
	if st.Skip == nil {
		return "", nil
	}
	ans, f := w.judge(ctx, v, *st.Skip)
	switch {
	case f != nil:
		return "", f
	case ans.Answer == plan.Yes:
		return orSo(ans.Why), nil
	case ans.Answer == plan.Unknown:
		return "", &failure{class: Failed, why: "cannot tell whether it is needed: " + ans.Why}
	}
	return "", nil
}

func orSo(why string) string {
	if why == "" {
		return "it is so"
	}
	return why
}

// after notes what is true once a step is done.
func (w *walk) after(ctx context.Context, v *view, st plan.Step) {
	w.giveBack(ctx, st)
	w.mu.Lock()
	w.done[st.ID] = true
	if st.Now != "" {
		w.downs[st.Host] = st.Now
	}
	w.mu.Unlock()
	w.prove(ctx, v, st)
}

// now is what this walk last made true of a host.
func (w *walk) now(host string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.downs[host]
}

// quietTries is how often a step that only reads or stages is tried over a connection that gets lost.
const quietTries = 3

// free looks once whether somebody holds the host. It waits for nobody: held hosts are come back to.
func (w *walk) free(ctx context.Context, v *view, at Event, st plan.Step) *failure {
	ans, f := w.judge(ctx, v, *st.Done)
	switch {
	case f != nil:
		return f
	case ans.Answer == plan.Yes:
		at.Kind, at.Text = StepDone, ans.Why
		return w.failIf(w.emit(ctx, at, false))
	}
	return &failure{class: GateClosed, why: ans.Why, held: ans.Answer == plan.No}
}

func (w *walk) skip(ctx context.Context, v *view, at Event, st plan.Step, why string) *failure {
	if st.Skip != nil {
		w.giveBackIf(ctx, v, st)
		w.prove(ctx, v, st)
	}
	at.Kind, at.Text = StepSkipped, why
	return w.failIf(w.emit(ctx, at, false))
}

// giveBackIf notes that there is nothing to give back any more where the step's goal holds already.
func (w *walk) giveBackIf(ctx context.Context, v *view, st plan.Step) {
	if st.If == "" || !w.has(st.If, st.Of) {
		return
	}
	if ans, f := w.judge(ctx, v, *st.Skip); f == nil && ans.Answer == plan.Yes {
		w.giveBack(ctx, st)
	}
}

// note remembers the VMMs of a host just before its service is stopped (K41). A service that was started again meanwhile is noted
// anew: what ended while it ran was no loss of this run.
func (w *walk) note(ctx context.Context, v *view, st plan.Step) *failure {
	if st.Proof == "" {
		return nil
	}
	vmms, err := v.seen.Facts[st.Proof].VMMs.Get()
	if err != nil {
		return &failure{class: Failed, why: fmt.Sprintf("cannot note the VMMs before the stop: %v", err)}
	}
	w.mu.Lock()
	w.notedBy[st.Proof] = vmms
	delete(w.proved, st.Proof)
	w.mu.Unlock()
	v.forget()
	return w.failIf(w.emit(ctx, Event{Kind: Continuity, Host: st.Proof, Text: continuityNoted, VMMs: before(vmms)}, true))
}
