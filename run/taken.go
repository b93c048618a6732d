package run

import (
	"context"

	"github.com/kibotos/kibo-rollout/plan"
)

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
	_ = w.setTaken(ctx, GivenBack, st.If, st.Of, st.Host) // it is given back, whether that can be kept or not
}

// setTaken keeps what was taken or given back. What cannot be kept as taken must not be taken.
func (w *walk) setTaken(ctx context.Context, kind EventKind, record, of, host string) *failure {
	err := w.emit(ctx, Event{Kind: kind, Record: record, Text: of, Host: host}, kind == Taken)
	if err != nil && kind == Taken {
		return w.failIf(err)
	}
	w.mu.Lock()
	w.taken[record+" "+of] = kind == Taken
	w.mu.Unlock()
	return nil
}

// tell emits an event whose loss stops nothing; a journal that cannot be written stops the walk at the next step.
func (w *walk) tell(ctx context.Context, e Event) { _ = w.emit(ctx, e, e.Kind == Taken) }
