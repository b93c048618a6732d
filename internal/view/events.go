package view

import (
	"fmt"
	"io"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// Events draws a walk as it happens, one plain line a step, and a summary at the end. It only ever appends: what it
// writes to a log is what it writes to a terminal. Observe is called by one goroutine at a time.
type Events struct {
	screen  Screen
	paint   brush
	tally   *tally
	names   int               // cells of the longest host name
	open    string            // step whose line is begun and has no end yet
	running map[string]bool   // steps
	waits   map[string]string // by host and step: what its last progress line was about
	told    map[string]bool   // blocks whose failure was told with its step
	group   map[string]string // by block: the title it shares with those that are alike
	headed  map[string]bool   // titles of blocks
}

// Events starts a view of one walk.
func (s Screen) Events() *Events {
	return &Events{
		screen: s, paint: s.brush(), tally: newTally(), running: map[string]bool{}, waits: map[string]string{},
		told: map[string]bool{}, group: map[string]string{}, headed: map[string]bool{},
	}
}

// Observe draws one event. What goes wrong in drawing is nobody's business: a broken terminal must not end a walk.
func (v *Events) Observe(e run.Event) {
	defer func() { _ = recover() }() // of drawing alone: nothing of the walk happens in here
	v.tally.add(e)
	v.names = max(v.names, cells(Line(e.Host)))
	switch e.Kind {
	case run.RunStarted, run.RunResumed:
		v.begin(e)
	case run.BlockStarted:
		v.block(e)
	case run.BlockSkipped:
		v.blockSkipped(e)
	case run.BlockHeld:
		v.write(v.stamp(e) + v.paint(warn, Line(e.Host)+" is held, and left for later") + evidence(e.Text) + "\n")
	case run.BlockFailed, run.StepFailed:
		v.failed(e)
	case run.StepStarted:
		v.stepStarted(e)
	case run.StepDone, run.StepSkipped:
		v.stepEnded(e)
	case run.Command:
		if v.screen.Verbose {
			v.write(v.paint(faint, "          $ "+Line(e.Text)) + "\n")
		}
	case run.Progress:
		v.progress(e)
	case run.RunDone, run.RunStopped:
		v.end(e)
	}
}

// write ends an unfinished line first.
func (v *Events) write(text string) {
	if v.open != "" {
		v.open = ""
		text = "\n" + text
	}
	_, _ = io.WriteString(v.screen.Out, text) // see Observe
}

func (v *Events) begin(e run.Event) {
	what := "run " + Line(e.Run)
	if e.Kind == run.RunResumed {
		what += " goes on"
	}
	if e.Plan != nil {
		what += ": " + aim(*e.Plan)
		for _, h := range e.Plan.Hosts {
			v.names = max(v.names, cells(Line(h.Name)))
		}
		for _, list := range [][]plan.Block{e.Plan.Blocks, e.Plan.Clean} {
			for _, l := range alike(list) {
				shared := title(l)
				for _, b := range l {
					v.group[b.ID] = shared
				}
			}
		}
	}
	v.write(v.stamp(e) + v.paint(strong, what) + "\n")
}

func (v *Events) stamp(e run.Event) string { return v.paint(faint, e.Time.Format("15:04:05")) + "  " }

// title finds an event's title: its own, or the plan's.
func (v *Events) title(e run.Event) string {
	if e.Title != "" {
		return Line(e.Title)
	}
	if st, ok := v.tally.steps[e.Step]; ok {
		return Line(st.Title)
	}
	if e.Step != "" {
		return Line(e.Step)
	}
	return Line(e.Block)
}

// block heads a block, or once all the blocks that are alike and run at the same time.
func (v *Events) block(e run.Event) {
	head, ok := v.group[e.Block]
	if !ok {
		head = v.title(e)
	}
	if !v.headed[head] {
		v.write("\n" + v.stamp(e) + v.paint(strong, head) + "\n")
	}
	v.headed[head] = true
}

func (v *Events) blockSkipped(e run.Event) {
	title := v.title(e)
	if b, ok := v.tally.blocks[e.Block]; ok {
		title = blockTitle(b)
	}
	v.write("\n" + v.stamp(e) + v.paint(strong, title) + v.paint(good, "  done already") + evidence(e.Text) + "\n")
}

func evidence(text string) string {
	if text == "" {
		return ""
	}
	return ": " + Line(text)
}

func (v *Events) head(e run.Event) string {
	return v.stamp(e) + pad(Line(e.Host), v.names) + "  " + v.title(e)
}

// stepStarted begins a line that stepEnded ends, unless something else is written in between. Of steps that run at the
// same time only the first begins one: the others have theirs when they end.
func (v *Events) stepStarted(e run.Event) {
	v.running[e.Step] = true
	if len(v.running) > 1 && !v.screen.Verbose {
		return
	}
	v.write(v.head(e) + " …")
	v.open = e.Step
}

func (v *Events) stepEnded(e run.Event) {
	delete(v.running, e.Step)
	word, t := "done", good
	if e.Kind == run.StepSkipped {
		word, t = "already so", faint
	}
	end := v.paint(t, word)
	if e.Took > 0 {
		end += " " + took(e.Took)
	}
	if e.Kind == run.StepSkipped || v.screen.Verbose {
		end += evidence(e.Text)
	}
	if v.open == e.Step && e.Step != "" {
		v.open = ""
		_, _ = io.WriteString(v.screen.Out, " "+end+"\n") // see Observe
		return
	}
	v.write(v.head(e) + " … " + end + "\n")
}

// failed tells a failure once: with its step, and with its block only what is left there and what no step told.
func (v *Events) failed(e run.Event) {
	delete(v.running, e.Step)
	p := v.screen.page()
	if v.open == e.Step && e.Step != "" {
		p.line(" %s", v.paint(bad, "failed"))
		v.open = ""
	}
	if e.Kind == run.StepFailed || !v.told[e.Block] {
		text := v.title(e)
		if e.Host != "" {
			text = Line(e.Host) + ": " + text
		}
		if e.Text != "" {
			text += ": " + e.Text
		}
		p.failure(text, e.Next)
	}
	v.told[e.Block] = true
	if b, ok := v.tally.blocks[e.Block]; ok && e.Kind == run.BlockFailed && b.Stuck != "" {
		p.labelled("left: ", strong, b.Stuck)
	}
	v.write(p.String())
}

// largeUpload is worth telling about while it goes on, in bytes.
const largeUpload = 10_000_000

// progress tells what a step waits for, once, and the quarters of a large upload.
func (v *Events) progress(e run.Event) {
	text, mark := Line(e.Text), Line(e.Text)
	if e.Size > 0 {
		if e.Size < largeUpload && !v.screen.Verbose {
			return
		}
		if text == "" {
			text = Line(e.Title)
		}
		mark = fmt.Sprintf("%s %d/4", text, e.Sent*4/e.Size)
		text = fmt.Sprintf("%s, %s of %s", text, size(e.Sent), size(e.Size))
	}
	key := e.Host + " " + e.Step
	if text == "" || v.waits[key] == mark {
		return
	}
	v.waits[key] = mark
	v.write(v.stamp(e) + pad(Line(e.Host), v.names) + "  " + v.paint(faint, "· "+text) + "\n")
}

func (v *Events) end(e run.Event) {
	p := v.screen.page()
	p.gap()
	p.summary(v.tally, e)
	v.write("\n" + p.String())
}
