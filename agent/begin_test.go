package agent

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// A job that did not begin in the time its caller waited for that does not begin later: the window may have ended.
func TestJobDoesNotBeginLate(t *testing.T) {
	for late, runs := range map[time.Duration]bool{beginLimit: true, beginLimit + time.Second: false} {
		j, u := newJobs(t)
		open(t, j, gate.AllowFile{})
		u.fail = errors.New("systemd answers too late")
		if _, err := j.Run(t.Context(), order("k", "true"), 0); err == nil {
			t.Fatal("no error")
		}
		j.Now = func() time.Time { return now().Add(late) }
		if err := j.Work("k"); (err == nil) != runs {
			t.Errorf("%s after its permission: %v", late, err)
		}
		if _, err := os.Lstat(j.dir("k").began()); (err == nil) != runs {
			t.Errorf("%s after its permission: %v", late, err)
		}
	}
}

// Who asks for a job while another caller is starting it is not told that it is lost.
func TestWaitWhileStarting(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	u.wait = make(chan struct{})
	held, err := j.Window.lock(t.Context()) // as begin does
	if err != nil {
		t.Fatal(err)
	}
	d := j.dir("k")
	if err := errors.Join(os.MkdirAll(string(d), 0o700), writeJSON(d.order(), ordered{Order: order("k", "true"), Permitted: now()}, 0o600)); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if job, err := j.Wait(short, "k"); err != nil || job.State != gate.JobRunning {
		t.Errorf("got %+v %v", job, err)
	}
	time.AfterFunc(50*time.Millisecond, func() {
		_ = u.Start(t.Context(), "k")
		close(u.wait)
		held.release()
	})
	if job, err := j.Wait(t.Context(), "k"); err != nil || job.State != gate.JobFinished {
		t.Errorf("got %+v %v", job, err)
	}
}

// A job whose process comes up while it is about to be cleared away is joined, not run a second time.
func TestClearAwayLeavesWhatBegins(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	u.fail = errors.New("systemd answers too late")
	if _, err := j.Run(t.Context(), order("k", "true"), 0); err == nil {
		t.Fatal("no error")
	}
	held, err := tryLock(j.dir("k").alive(), unix.LOCK_EX) // as its process does first
	if err != nil {
		t.Fatal(err)
	}
	if job, err := j.clearAway("k"); err != nil || job.State == gate.JobUnknown {
		t.Errorf("cleared away under its process: %+v %v", job, err)
	}
	if err := writeJSON(j.dir("k").began(), begun{Started: now(), PID: 1}, 0o600); err != nil {
		t.Fatal(err)
	}
	held.release()
	if job, err := j.clearAway("k"); err != nil || job.State != gate.JobLost || job.Started.IsZero() {
		t.Errorf("what began is to be run again: %+v %v", job, err)
	}
}
