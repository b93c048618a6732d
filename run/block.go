package run

import (
	"context"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// undoTime bounds what is done after a failure or an interrupt: closing a window, going back.
const undoTime = 10 * time.Minute

// block walks one block. Its Finally steps run whenever a step of it was begun, also after an interrupt.
func (w *walk) block(ctx context.Context, b plan.Block) *failure {
	view := &view{}
	if b.Goal != nil {
		v, err := w.judge(ctx, view, *b.Goal)
		if err != nil {
			return err.at(b, plan.Step{Host: b.Host})
		}
		if v.Answer == plan.Yes && !w.Past.Begun[b.ID] {
			return w.failIf(w.emit(ctx, Event{Kind: BlockSkipped, Block: b.ID, Host: b.Host, Title: b.Title, Text: v.Why}, false))
		}
	}
	if err := w.emit(ctx, Event{Kind: BlockStarted, Block: b.ID, Host: b.Host, Title: b.Title}, false); err != nil {
		return w.failIf(err)
	}
	began := w.Now()
	fail := w.steps(ctx, view, b, b.Steps)
	if fail != nil && fail.held && b.Around {
		return w.around(ctx, b, fail)
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if f := w.steps(after, view.again(), finally(b), b.Finally); f != nil && fail == nil {
		fail = f
	}
	if fail != nil {
		if err := w.emit(after, Event{Kind: BlockFailed, Block: b.ID, Host: b.Host, Title: b.Title, Text: fail.why, Next: fail.next}, true); err != nil {
			return w.failIf(err)
		}
		return fail
	}
	return w.failIf(w.emit(ctx, Event{Kind: BlockDone, Block: b.ID, Host: b.Host, Title: b.Title, Took: w.Now().Sub(began)}, false))
}

// around tells that a held host is left for later: nothing was begun there, so there is nothing to close.
func (w *walk) around(ctx context.Context, b plan.Block, fail *failure) *failure {
	if err := w.emit(ctx, Event{Kind: BlockHeld, Block: b.ID, Host: b.Host, Title: b.Title, Text: fail.why}, false); err != nil {
		return w.failIf(err)
	}
	return fail
}

// finally is the block as its last steps see it: they are walked even when a stop was asked for.
func finally(b plan.Block) plan.Block {
	b.Steps = nil
	return b
}

// steps walks steps in order. A step that was refused cleanly is followed by its way back.
func (w *walk) steps(ctx context.Context, v *view, b plan.Block, steps []plan.Step) *failure {
	for _, st := range steps {
		if len(b.Steps) > 0 && w.stopped(ctx) {
			return (&failure{class: Interrupted, why: "stopped as asked, before " + st.Title}).at(b, st)
		}
		fail := w.step(ctx, v, b, st)
		if fail == nil {
			continue
		}
		fail = fail.at(b, st)
		if fail.held && b.Around {
			return fail
		}
		w.tell(ctx, Event{Kind: StepFailed, Block: b.ID, Step: st.ID, Host: st.Host, Title: st.Title, Text: fail.why, Next: fail.next})
		if len(st.Back) > 0 && fail.clean() {
			w.back(ctx, b, st, fail)
		}
		return fail
	}
	return nil
}

// back walks the way back of a step that said no while no file was replaced (K60), and says how it went.
func (w *walk) back(ctx context.Context, b plan.Block, st plan.Step, fail *failure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if f := w.steps(ctx, &view{}, finally(b), st.Back); f != nil {
		fail.left = "the way back failed too: " + f.why
		return
	}
	if st.Effect == command.Reads { // a check that said no, after a stop
		fail.left = "no file was replaced; the installed version serves again on " + st.Host
	}
}

// step observes, then acts, then observes again.
func (w *walk) step(ctx context.Context, v *view, b plan.Block, st plan.Step) *failure {
	at := Event{Block: b.ID, Step: st.ID, Host: st.Host, Title: st.Title}
	if st.If != "" && !w.has(st.If, st.Of) {
		return w.skip(ctx, at, "this run took no "+st.If+" of "+st.Of+": left as it is")
	}
	if st.Skip != nil {
		ans, err := w.judge(ctx, v, *st.Skip)
		switch {
		case err != nil:
			return err
		case ans.Answer == plan.Yes:
			w.giveBack(ctx, st)
			return w.skip(ctx, at, ans.Why)
		case ans.Answer == plan.Unknown:
			return &failure{class: Failed, why: "cannot tell whether it is needed: " + ans.Why}
		}
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
	if err := w.emit(ctx, at, changes && len(st.Act) > 0); err != nil {
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
	w.giveBack(ctx, st)
	at.Kind, at.Text, at.Took = StepDone, evidence, w.Now().Sub(began)
	return w.failIf(w.emit(ctx, at, false))
}

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

// quietTries is how often a step that only reads or stages is tried over a connection that gets lost.
const quietTries = 3

func (w *walk) skip(ctx context.Context, at Event, why string) *failure {
	at.Kind, at.Text = StepSkipped, why
	return w.failIf(w.emit(ctx, at, false))
}

// note remembers the VMMs of a host just before its service is stopped (K41). Noted once a run: a resumed
// run proves against what the first attempt saw.
func (w *walk) note(ctx context.Context, v *view, st plan.Step) *failure {
	if st.Proof == "" {
		return nil
	}
	w.mu.Lock()
	_, have := w.notedBy[st.Proof]
	w.mu.Unlock()
	if have {
		return nil
	}
	vmms, err := v.seen.Facts[st.Proof].VMMs.Get()
	if err != nil {
		return &failure{class: Failed, why: fmt.Sprintf("cannot note the VMMs before the stop: %v", err)}
	}
	w.mu.Lock()
	w.notedBy[st.Proof] = vmms
	w.mu.Unlock()
	v.forget()
	return w.failIf(w.emit(ctx, Event{Kind: Continuity, Host: st.Proof, Text: "noted", VMMs: before(vmms)}, true))
}

// await looks until the step's completion condition holds or its time is up.
func (w *walk) await(ctx context.Context, v *view, at Event, st plan.Step) (string, *failure) {
	limit := st.Limit
	if limit <= 0 {
		limit = time.Minute
	}
	end := w.Now().Add(limit)
	pause, shown := 200*time.Millisecond, ""
	for {
		ans, f := w.judge(ctx, v, *st.Done)
		if f == nil && ans.Answer == plan.Yes {
			return ans.Why, nil
		}
		why := ans.Why
		if f != nil {
			why = f.why
		}
		v.forget()
		if !w.Now().Before(end) || ctx.Err() != nil {
			if f != nil {
				return "", f
			}
			return "", &failure{class: Failed, why: fmt.Sprintf("not complete after %s: %s", limit, why)}
		}
		if len(st.Act) == 0 && w.stopRequested() {
			return "", &failure{class: Interrupted, why: "stopped as asked, while waiting: " + why}
		}
		if why != shown {
			shown = why
			w.tell(ctx, Event{Kind: Progress, Block: at.Block, Step: at.Step, Host: at.Host, Title: at.Title, Text: why})
		}
		w.Pause(ctx, pause)
		pause = min(pause*3/2, 2*time.Second)
	}
}

func (w *walk) stopRequested() bool {
	select {
	case <-w.Stop:
		return true
	default:
		return false
	}
}

// attempt counts a step's attempts over all walks of this run.
func (w *walk) attempt(step string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries[step]++
	return w.tries[step]
}

func (w *walk) mark(changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = w.changed || changed
}

func (w *walk) has(record, of string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken[record+" "+of]
}

// giveBack notes that what the step gives back (its If) is given back.
func (w *walk) giveBack(ctx context.Context, st plan.Step) {
	if st.If == "" {
		return
	}
	w.setTaken(ctx, GivenBack, st.If, st.Of, st.Host)
}

func (w *walk) setTaken(ctx context.Context, kind EventKind, record, of, host string) {
	w.mu.Lock()
	w.taken[record+" "+of] = kind == Taken
	w.mu.Unlock()
	w.tell(ctx, Event{Kind: kind, Record: record, Text: of, Host: host})
}

// tell emits an event whose loss stops nothing; a journal that cannot be written stops the walk at the next step.
func (w *walk) tell(ctx context.Context, e Event) { _ = w.emit(ctx, e, e.Kind == Taken) }

func before(vmms []checks.VMM) []VMMProof {
	out := make([]VMMProof, len(vmms))
	for i, v := range vmms {
		out[i] = VMMProof{Unit: v.Unit, Before: proof(v)}
	}
	return out
}

func proof(v checks.VMM) string { return fmt.Sprintf("pid %d since %s", v.PID, v.Start) }
