package agent

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// known returns the job that already has the key; unknown if it has to be started. A job that was asked for
// but never got to its command is cleared away: nothing has happened, so it may be started anew.
func (j Jobs) known(o Order) (gate.Job, error) {
	d := j.dir(o.Key)
	var asked ordered
	if err := readJSON(d.order(), &asked); errors.Is(err, os.ErrNotExist) {
		return gate.Job{State: gate.JobUnknown}, nil
	} else if err != nil {
		return gate.Job{}, err
	}
	job, err := d.describe(j.Units.Left)
	if err != nil {
		return gate.Job{}, err
	}
	if job.State == gate.JobLost && job.Started.IsZero() {
		job, err = j.clearAway(o.Key)
		if err != nil || job.State == gate.JobUnknown {
			return job, err
		}
	}
	if !o.same(asked.Order) {
		return j.notStarted(o, gate.JobDenied, gate.CodeBadRequest, "the key was used for another command already: "+fmt.Sprintf("%q", asked.Argv)), nil
	}
	return job, nil
}

// clearAway removes a job that never began; unknown then. Its process may come up at this very moment, after a
// caller that was killed: holding the lock that it begins with shows whether it has.
func (j Jobs) clearAway(key string) (gate.Job, error) {
	d := j.dir(key)
	held, err := tryLock(d.alive(), unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		return d.describe(j.Units.Left)
	}
	if err != nil {
		return gate.Job{}, err
	}
	if _, err := os.Lstat(d.began()); err == nil {
		held.release() // describe tries it
		return d.describe(j.Units.Left)
	}
	defer held.release()
	if err := os.RemoveAll(string(d)); err != nil {
		return gate.Job{}, fmt.Errorf("cannot clear away job %s, which never started: %w", key, err)
	}
	return gate.Job{State: gate.JobUnknown}, nil
}

func (j Jobs) notStarted(o Order, state, code, reason string) gate.Job {
	return gate.Job{Key: o.Key, State: state, Operation: o.Request.Operation, Argv: o.Argv, Code: code, Reason: reason}
}

// busy says which other job runs on this host; "" if none.
func (j Jobs) busy() (string, error) {
	var current Order
	err := readJSON(j.currentKeyFile(), &current)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	l, err := tryLock(j.busyLock(), unix.LOCK_EX)
	if errors.Is(err, errLocked) {
		return fmt.Sprintf("job %s (%s) is running on this host", current.Key, current.Request.Operation), nil
	}
	if err != nil {
		return "", err
	}
	l.release()
	if current.Key == "" || !j.dir(current.Key).exists() {
		return "", nil
	}
	// Without the lock: its process was killed, yet what it had started may still be at work.
	job, err := j.dir(current.Key).describe(j.Units.Left)
	if err != nil || job.State != gate.JobRunning {
		return "", err
	}
	return fmt.Sprintf("processes of job %s (%s) are still running on this host", current.Key, current.Request.Operation), nil
}
