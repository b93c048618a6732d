package run

import (
	"context"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/plan"
)

// undoTime bounds what is done after a failure or an interrupt: closing a window, going back.
const undoTime = 10 * time.Minute

// block walks one block. Its Finally steps run whenever a step of it was begun, also after an interrupt.
func (w *walk) block(ctx context.Context, b plan.Block) *failure {
	view := &view{}
	if b.Goal != nil && !w.Past.Begun[b.ID] {
		v, err := w.judge(ctx, view, *b.Goal)
		if err != nil {
			return err.at(b, plan.Step{Host: b.Host})
		}
		if v.Answer == plan.Yes {
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
		if !undoing(b) && w.stopped(ctx) {
			f := &failure{class: Interrupted, why: "stopped as asked, before: " + st.Title, left: w.now(st.Host)}
			return f.at(b, plan.Step{ID: st.ID, Host: st.Host})
		}
		fail := w.step(ctx, v, b, st)
		if fail == nil {
			continue
		}
		if ctx.Err() != nil && fail.class == Unreachable {
			fail.class, fail.why = Interrupted, "cancelled: "+fail.why
		}
		fail.stands(w.now(st.Host), st.OnFail)
		fail = fail.at(b, st)
		if fail.held && b.Around {
			return fail
		}
		kind := StepFailed
		if fail.open {
			kind = StepUnknown
		}
		w.tell(ctx, Event{Kind: kind, Block: b.ID, Step: st.ID, Host: st.Host, Title: st.Title, Text: fail.why, Next: fail.next})
		if len(st.Back) > 0 && fail.clean() {
			w.back(ctx, b, st, fail)
		}
		return fail
	}
	return nil
}

// undoing reports whether the block's last steps are walked, or a way back: they are walked even when a stop was asked for, and even
// when the journal cannot be kept any more.
func undoing(b plan.Block) bool { return len(b.Steps) == 0 }

// back walks the way back of a step that said no while no file was replaced (K60), and says how it went.
func (w *walk) back(ctx context.Context, b plan.Block, st plan.Step, fail *failure) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if f := w.steps(ctx, &view{}, finally(b), st.Back); f != nil {
		fail.left = "the way back failed too: " + f.why
		return
	}
	if now := w.now(st.Host); now != "" && strings.HasSuffix(now, plan.Runs) {
		fail.left = "no file was replaced; the installed version serves again on " + st.Host
	}
}
