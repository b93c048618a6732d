package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// act carries out a step's actions in order. Neighbouring execs on one host travel together.
func (w *walk) act(ctx context.Context, at Event, st plan.Step) (string, *failure) {
	limit := st.Limit
	if limit <= 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer w.lockAll(st.Act)()
	evidence := ""
	for i := 0; i < len(st.Act); {
		a := st.Act[i]
		n := 1
		var f *failure
		var why string
		switch a.Verb {
		case plan.Exec:
			n = together(st.Act[i:])
			why, f = w.execs(ctx, at, st.Act[i:i+n])
		case plan.Job:
			why, f = w.job(ctx, at, a)
		case plan.Upload:
			why, f = w.upload(ctx, at, a)
		case plan.Grant:
			why, f = w.grant(ctx, at, a)
		case plan.Revoke:
			why, f = w.revoke(ctx, at, a)
		default:
			f = &failure{class: Failed, why: "no such verb: " + string(a.Verb)}
		}
		if f != nil {
			return "", f
		}
		evidence = why
		i += n
	}
	return evidence, nil
}

// lockAll holds every host that the actions touch, in sorted order so that two blocks cannot wait for each other.
func (w *walk) lockAll(acts []plan.Action) func() {
	var hosts []string
	for _, a := range acts {
		if !slices.Contains(hosts, a.Host) {
			hosts = append(hosts, a.Host)
		}
	}
	slices.Sort(hosts)
	var unlock []func()
	for _, h := range hosts {
		unlock = append(unlock, w.lock(h))
	}
	return func() {
		for _, u := range slices.Backward(unlock) {
			u()
		}
	}
}

func together(acts []plan.Action) int {
	n := 1
	for n < len(acts) && acts[n].Verb == plan.Exec && acts[n].Host == acts[0].Host {
		n++
	}
	return n
}

func (w *walk) execs(ctx context.Context, at Event, acts []plan.Action) (string, *failure) {
	b := command.Batch{StopOnFailure: true}
	for _, a := range acts {
		b.Commands = append(b.Commands, a.Command)
		w.showCommand(ctx, at, a, a.Command)
		if a.Record != "" {
			if f := w.setTaken(ctx, Taken, a.Record, a.Of, a.Host); f != nil {
				return "", f
			}
		}
	}
	conn, err := w.Fleet.Conn(ctx, acts[0].Host)
	if err != nil {
		return "", lost(err)
	}
	results, err := conn.RunBatch(ctx, b)
	if err != nil {
		return "", lost(err)
	}
	why := ""
	for i, res := range results {
		r := acts[i].Judge(res)
		if !r.OK {
			return "", ruled(r)
		}
		why = r.Why
	}
	if len(results) < len(acts) {
		return "", &failure{class: Failed, why: "not every command was run"}
	}
	return why, nil
}

func ruled(r plan.Ruling) *failure {
	f := &failure{class: Failed, why: r.Why}
	if r.Blocked {
		f.class = Blocked
	}
	return f
}

func (w *walk) showCommand(ctx context.Context, at Event, a plan.Action, c command.Command) {
	w.tell(ctx, Event{Kind: Command, Block: at.Block, Step: at.Step, Host: a.Host, Text: c.String()})
}

func (w *walk) grant(ctx context.Context, at Event, a plan.Action) (string, *failure) {
	return w.execs(ctx, at, []plan.Action{a})
}

func (w *walk) revoke(ctx context.Context, at Event, a plan.Action) (string, *failure) {
	record := a.Record
	a.Record = ""
	why, f := w.execs(ctx, at, []plan.Action{a})
	if f == nil && record != "" {
		_ = w.setTaken(ctx, GivenBack, record, a.Of, a.Host) // it is given back, whether that can be kept or not
	}
	return why, f
}

func (w *walk) upload(ctx context.Context, at Event, a plan.Action) (string, *failure) {
	src, closer, err := w.Source(*a.Deb)
	if err != nil {
		return "", &failure{class: Failed, why: err.Error()}
	}
	defer func() { _ = closer.Close() }() // opened for reading only
	conn, err := w.Fleet.Conn(ctx, a.Host)
	if err != nil {
		return "", lost(err)
	}
	err = conn.Upload(ctx, remote.Upload{
		Source: src, Size: a.Deb.Size, SHA256: a.Deb.SHA256, Path: a.Path, Mode: 0o600,
		Progress: func(sent, size int64) {
			w.tell(ctx, Event{Kind: Progress, Block: at.Block, Step: at.Step, Host: a.Host, Title: "upload " + a.Deb.File, Sent: sent, Size: size})
		},
	})
	if err != nil {
		return "", lost(err)
	}
	return fmt.Sprintf("%s uploaded, %d bytes", a.Deb.File, a.Deb.Size), nil
}

// job asks the gate of a host for a command and waits for its end, over as many connections as that takes: a lost
// connection never means that the command did not run (the host's job tells).
func (w *walk) job(ctx context.Context, at Event, a plan.Action) (string, *failure) {
	if a.Record != "" {
		if f := w.setTaken(ctx, Taken, a.Record, a.Of, a.Host); f != nil {
			return "", f
		}
	}
	j, f := w.jobEnds(ctx, at, a)
	if f == nil && j.State == gate.JobDenied && a.Record != "" {
		_ = w.setTaken(ctx, GivenBack, a.Record, a.Of, a.Host) // nothing was started, so nothing was taken
	}
	return w.jobEnd(a, j, f)
}

// jobEnds runs the job, or finds it where an earlier walk left it running.
func (w *walk) jobEnds(ctx context.Context, at Event, a plan.Action) (gate.Job, *failure) {
	if open := w.Past.Open[at.Step]; len(open) > 0 && at.Attempt == open[len(open)-1]+1 {
		for _, n := range slices.Backward(open) {
			if j, f := w.rejoin(ctx, at, a, plan.JobKey(w.Plan.ID, a, n)); f != nil || !unstarted(j) {
				return j, f
			}
		}
	}
	key := plan.JobKey(w.Plan.ID, a, at.Attempt)
	c := plan.JobCommand(w.Plan.ID, a, at.Attempt)
	w.showCommand(ctx, at, a, c)
	for try := 1; ; try++ {
		j, err := w.askJob(ctx, a.Host, c)
		if err != nil {
			if j, f := w.rejoin(ctx, at, a, key); f != nil || !unstarted(j) {
				return j, f
			}
			if try >= jobTries {
				return j, &failure{class: Failed, why: err.Error(), left: "nothing was started on " + a.Host}
			}
			w.Pause(ctx, time.Second)
			continue // the host never heard of it: the same key cannot run twice
		}
		switch {
		case j.State == gate.JobBusy && ctx.Err() == nil:
			w.tell(ctx, Event{Kind: Progress, Block: at.Block, Step: at.Step, Host: a.Host, Text: "the host is busy: " + j.Reason})
			w.Pause(ctx, time.Second)
		case j.State == gate.JobRunning:
			return w.rejoin(ctx, at, a, key)
		default:
			return j, nil
		}
	}
}

// unstarted reports whether the host knows that the job never began: asking for it again cannot run it twice.
func unstarted(j gate.Job) bool {
	return j.State == gate.JobUnknown || j.State == gate.JobLost && j.Started.IsZero()
}

// jobTries is how often a job is asked for that the host does not know afterwards.
const jobTries = 3

// rejoin asks for a job until its end is known, dialing again as often as the time limit allows.
func (w *walk) rejoin(ctx context.Context, at Event, a plan.Action, key string) (gate.Job, *failure) {
	pause := 200 * time.Millisecond
	for {
		j, err := w.askJob(ctx, a.Host, plan.WaitCommand(key))
		if err == nil && j.State != gate.JobRunning {
			return j, nil
		}
		if ctx.Err() != nil {
			if err == nil {
				err = fmt.Errorf("host %s: job %s still runs", a.Host, key)
			}
			f := lost(err)
			f.open = true
			f.why += "; the job may go on on the host, its outcome is not known here"
			return j, f
		}
		text := "waiting for the job on the host"
		if err != nil {
			text = "connection lost; the job goes on on the host: " + err.Error()
		}
		w.tell(ctx, Event{Kind: Progress, Block: at.Block, Step: at.Step, Host: a.Host, Text: text})
		w.Pause(ctx, pause)
		pause = min(pause*2, 5*time.Second)
	}
}

// askJob runs `kibo-agent run` or `wait` and reads the job that it prints.
func (w *walk) askJob(ctx context.Context, host string, c command.Command) (gate.Job, error) {
	conn, err := w.Fleet.Conn(ctx, host)
	if err != nil {
		return gate.Job{}, err
	}
	res, err := conn.Run(ctx, c)
	if err != nil {
		return gate.Job{}, err
	}
	var j gate.Job
	if err := json.Unmarshal(res.Stdout, &j); err == nil && j.State != "" {
		return j, nil
	}
	if res.Exit == 127 {
		return gate.Job{State: gate.JobDenied, Code: "no-agent", Reason: "kibo-agent is not installed"}, nil
	}
	return gate.Job{}, fmt.Errorf("host %s: the agent's answer cannot be read (exit status %d): %.300q", host, res.Exit, res.Stderr)
}

func (w *walk) jobEnd(a plan.Action, j gate.Job, f *failure) (string, *failure) {
	switch {
	case f != nil:
		return "", f
	case j.State == gate.JobDenied:
		return "", &failure{class: GateClosed, why: "the gate of " + a.Host + " says no: " + j.Reason, left: "nothing was started on " + a.Host}
	case j.State == gate.JobFinished && j.Exit == 0:
		return "exit status 0", nil
	case j.State == gate.JobFinished:
		return "", &failure{class: Failed, why: fmt.Sprintf("`%s` ended with exit status %d: %s", a.Command.String(), j.Exit, tail(j.Output))}
	case j.State == gate.JobLost:
		return "", &failure{class: Failed, why: fmt.Sprintf("`%s` was cut off on the host (power or kill): %s", a.Command.String(), j.Reason)}
	}
	return "", &failure{class: Failed, why: fmt.Sprintf("`%s` is %s on %s: %s", a.Command.String(), j.State, a.Host, j.Reason)}
}

// tail is the end of a command's output, short enough for one message.
func tail(out string) string {
	const most = 600
	if len(out) > most {
		out = "…" + out[len(out)-most:]
	}
	return out
}
