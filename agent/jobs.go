package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

const (
	startLimit = 30 * time.Second       // for a unit to be up and have said so
	leftPoll   = 200 * time.Millisecond // how often leftovers of a killed job are looked for
	keepJobs   = 30 * 24 * time.Hour    // how long an ended job can be asked for
)

// Units starts jobs in a way that outlives the caller, and knows whether anything of one is left.
type Units interface {
	// Start starts the transient unit of the job, whose process calls Work.
	Start(ctx context.Context, key string) error
	// Left reports whether the job's unit still has processes.
	Left(key string) (bool, error)
}

// Jobs runs single commands on this host: one at a time, each at most once, none tied to a connection.
type Jobs struct {
	Dir        string // normally /var/lib/kibo-agent
	Window     Window
	Units      Units
	Inhibitors func(context.Context) ([]gate.Inhibitor, error)
	Now        func() time.Time
	Versions   Versions // notices changes that went past the gate; zero: does not
}

func (j Jobs) root() string           { return filepath.Join(j.Dir, "jobs") }
func (j Jobs) dir(key string) jobDir  { return jobDir(filepath.Join(j.root(), key)) }
func (j Jobs) busyLock() string       { return filepath.Join(j.Dir, "lock") }
func (j Jobs) currentKeyFile() string { return filepath.Join(j.Dir, "current.json") }

// Run asks the gate and starts the order's command as a job, or joins the job that has the same key already,
// and waits for its end, at most for patience unless that is zero; then the job's state is still
// gate.JobRunning and the job goes on. Denied and busy are states, not errors: nothing was started.
func (j Jobs) Run(ctx context.Context, o Order, patience time.Duration) (gate.Job, error) {
	if err := o.Check(); err != nil {
		return gate.Job{}, err
	}
	job, err := j.begin(ctx, o)
	if err != nil || job.State == gate.JobDenied || job.State == gate.JobBusy {
		return job, err
	}
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return j.Wait(ctx, o.Key)
}

// Wait returns the job when it has ended, or as it is when ctx ends.
func (j Jobs) Wait(ctx context.Context, key string) (gate.Job, error) {
	if err := CheckKey(key); err != nil {
		return gate.Job{}, err
	}
	d := j.dir(key)
	for d.exists() {
		// The job's process holds this lock for as long as it lives: no need to look again and again.
		held, err := takeLock(ctx, d.alive(), unix.LOCK_SH)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return gate.Job{}, err
		}
		held.release()
		if left, err := j.Units.Left(key); err != nil || !left {
			break // describe meets the same error
		}
		if _, err := os.Lstat(d.exit()); err == nil {
			break // what is left was started by the job and meant to stay
		}
		pause(ctx, leftPoll)
	}
	job, err := d.describe(j.Units.Left)
	if err != nil || job.State != gate.JobLost || !job.Started.IsZero() {
		return job, err
	}
	// Lost before it began, or about to begin: whoever is starting it holds this lock until it has.
	held, err := j.Window.lock(ctx)
	if ctx.Err() != nil {
		job.State, job.Reason = gate.JobRunning, "it is being started"
		return job, nil
	}
	if err != nil {
		return gate.Job{}, err
	}
	held.release()
	job, err = d.describe(j.Units.Left)
	if err != nil || job.State != gate.JobRunning {
		return job, err
	}
	return j.Wait(ctx, key)
}

// begin is the part of Run under the lock that lets one caller at a time decide and start.
func (j Jobs) begin(ctx context.Context, o Order) (gate.Job, error) {
	if err := os.MkdirAll(j.Dir, 0o755); err != nil {
		return gate.Job{}, fmt.Errorf("cannot make %s: %w", j.Dir, err)
	}
	held, err := j.Window.lock(ctx)
	if err != nil {
		return gate.Job{}, err
	}
	defer held.release()
	known, err := j.known(o)
	if err != nil || known.State != gate.JobUnknown {
		return known, err
	}
	busy, err := j.busy()
	if err != nil || busy != "" {
		return j.notStarted(o, gate.JobBusy, "", busy), err
	}
	now := j.Now()
	if err := j.Window.Seen.note(now); err != nil {
		return gate.Job{}, err
	}
	f, v := j.Window.judge(j.Window.Path, now, o.Request)
	if v.Open {
		v = j.inhibited(ctx, o.Request.Operation, v)
	}
	if !v.Open {
		return j.notStarted(o, gate.JobDenied, v.Code, v.Reason), nil
	}
	j.prune(now)
	return j.start(ctx, o, f, now)
}

// start writes down the job, takes the window if it is for one use, and starts the unit.
func (j Jobs) start(ctx context.Context, o Order, f gate.AllowFile, now time.Time) (gate.Job, error) {
	d := j.dir(o.Key)
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return gate.Job{}, fmt.Errorf("cannot make the job's directory: %w", err)
	}
	if f.SingleUse {
		if v := j.Window.take(d.window(), now, o.Request); !v.Open {
			_ = os.RemoveAll(string(d))
			return j.notStarted(o, gate.JobDenied, v.Code, v.Reason), nil
		}
	} else if err := writeJSON(d.window(), f, 0o644); err != nil {
		return gate.Job{}, err
	}
	if err := writeJSON(d.order(), ordered{Order: o, Permitted: now}, 0o600); err != nil {
		return gate.Job{}, err
	}
	if err := errors.Join(writeJSON(j.currentKeyFile(), o, 0o600), syncDir(j.root())); err != nil {
		return gate.Job{}, err
	}
	_ = j.Versions.Approve(o.change()) // as in Guard.Permit
	err := j.Units.Start(ctx, o.Key)
	if err == nil {
		err = j.awaitBegin(ctx, d)
	}
	if err == nil {
		return gate.Job{Key: o.Key, State: gate.JobRunning}, nil
	}
	// An error means that nothing was started. When systemd's answer got lost but the job is there, it is a job.
	if job, lookErr := d.describe(j.Units.Left); lookErr == nil && (job.State == gate.JobRunning || !job.Started.IsZero()) {
		return job, nil
	}
	return gate.Job{}, fmt.Errorf("cannot start job %s: %w", o.Key, err)
}

// awaitBegin returns when the job's process holds the locks and has written that it began.
func (j Jobs) awaitBegin(ctx context.Context, d jobDir) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for ctx.Err() == nil {
		left, err := j.Units.Left(filepath.Base(string(d)))
		if err != nil {
			return err
		}
		// In this order: a process that was already gone has written began.json before.
		if _, err := os.Lstat(d.began()); err == nil {
			return nil
		}
		if !left {
			return errors.New("the job's process ended before it began")
		}
		pause(ctx, lockPoll)
	}
	return fmt.Errorf("cannot see job %s begin: %w", filepath.Base(string(d)), ctx.Err())
}

// prune forgets jobs that ended long ago. What cannot be removed is tried again next time.
func (j Jobs) prune(now time.Time) {
	entries, err := os.ReadDir(j.root())
	if err != nil {
		return
	}
	for _, e := range entries {
		d := j.dir(e.Name())
		var end ended
		if readJSON(d.exit(), &end) == nil && now.Sub(end.Ended) > keepJobs {
			_ = os.RemoveAll(string(d))
		}
	}
}

// List returns the jobs that run, and those that ended after since, oldest first, without their output.
func (j Jobs) List(since time.Time) ([]gate.Job, error) {
	entries, err := os.ReadDir(j.root())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list jobs: %w", err)
	}
	var jobs []gate.Job
	for _, e := range entries {
		job, err := j.dir(e.Name()).describe(j.Units.Left)
		if err != nil {
			return nil, err
		}
		job.Output = ""
		if job.State == gate.JobRunning || max(job.Started.Unix(), job.Ended.Unix()) > since.Unix() {
			jobs = append(jobs, job)
		}
	}
	slices.SortStableFunc(jobs, func(a, b gate.Job) int { return cmp.Compare(a.Started.UnixNano(), b.Started.UnixNano()) })
	return jobs, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
