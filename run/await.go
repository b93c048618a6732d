package run

import (
	"context"
	"fmt"
	"time"

	"github.com/kibotos/kibo-rollout/plan"
)

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
		if f == nil && ans.Final {
			return "", &failure{class: Failed, why: ans.Why}
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
