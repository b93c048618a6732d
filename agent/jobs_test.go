package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// goUnits runs jobs in this process instead of in transient units.
type goUnits struct {
	jobs *Jobs
	mu   sync.Mutex
	live map[string]bool
	fail error         // Start fails with it
	lose bool          // the job's process is killed at once after it began
	left bool          // what Left says of a lost job
	wait chan struct{} // jobs begin when it is closed
	all  sync.WaitGroup
}

func (u *goUnits) Start(_ context.Context, key string) error {
	if u.fail != nil {
		return u.fail
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.live[key] = true
	if u.lose {
		u.live[key] = false
		return writeJSON(u.jobs.dir(key).began(), begun{Started: now(), PID: 1}, 0o600)
	}
	u.all.Go(func() {
		if u.wait != nil {
			<-u.wait
		}
		_ = u.jobs.Work(key)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.live[key] = false
	})
	return nil
}

func (u *goUnits) Left(key string) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.live[key] || u.lose && u.left, nil
}

func newJobs(t *testing.T) (Jobs, *goUnits) {
	t.Helper()
	w := newWindow(t)
	u := &goUnits{live: map[string]bool{}}
	j := Jobs{Dir: filepath.Dir(w.Path), Window: w, Units: u, Now: now,
		Inhibitors: func(context.Context) ([]gate.Inhibitor, error) { return nil, nil }}
	u.jobs = &j
	t.Cleanup(u.all.Wait)
	return j, u
}

func open(t *testing.T, j Jobs, f gate.AllowFile) {
	t.Helper()
	f.NotAfter = now().Unix() + 600
	if v, err := j.Window.Place(t.Context(), f); err != nil || !v.Open {
		t.Fatalf("cannot place: %+v %v", v, err)
	}
}

func order(key string, argv ...string) Order {
	return Order{Key: key, Request: gate.Request{Operation: gate.OpStop}, Argv: argv}
}

func mustRun(t *testing.T, j Jobs, o Order) gate.Job {
	t.Helper()
	job, err := j.Run(t.Context(), o, 0)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestRunRecordsOutputAndExit(t *testing.T) {
	j, _ := newJobs(t)
	open(t, j, gate.AllowFile{})
	for name, tc := range map[string]struct {
		argv   []string
		exit   int
		output string
	}{
		"ok":         {[]string{"sh", "-c", "echo out; echo err >&2"}, 0, "out\nerr\n"},
		"fails":      {[]string{"sh", "-c", "exit 3"}, 3, ""},
		"signal":     {[]string{"sh", "-c", "kill -9 $$"}, 137, ""},
		"no-program": {[]string{"no-such-program-here"}, 127, "cannot run no-such-program-here: no such program\n"},
		"no-file":    {[]string{"/no/such/program"}, 127, "cannot run /no/such/program: fork/exec /no/such/program: no such file or directory\n"},
		"no-stdin":   {[]string{"sh", "-c", "cat; echo end"}, 0, "end\n"},
		"language":   {[]string{"sh", "-c", "echo $LC_ALL $DEBIAN_FRONTEND $NEEDRESTART_MODE; pwd"}, 0, "C noninteractive l\n/\n"},
		"background": {[]string{"sh", "-c", "sleep 60 </dev/null >/dev/null 2>&1 & echo gone"}, 0, "gone\n"},
	} {
		job := mustRun(t, j, order(name, tc.argv...))
		if job.State != gate.JobFinished || job.Exit != tc.exit || job.Output != tc.output || job.Started.IsZero() || job.Ended.IsZero() {
			t.Errorf("%s: %+v", name, job)
		}
	}
}

// proves Z8: a closed gate starts nothing, and says why.
func TestRunDenied(t *testing.T) {
	j, _ := newJobs(t)
	job := mustRun(t, j, order("k", "true"))
	if job.State != gate.JobDenied || job.Code != gate.CodeMissing || job.Reason == "" {
		t.Errorf("got %+v", job)
	}
	if _, err := os.Lstat(string(j.dir("k"))); err == nil {
		t.Error("a denied job left a directory")
	}
	open(t, j, gate.AllowFile{Operations: []string{gate.OpStart}})
	if job := mustRun(t, j, order("k", "true")); job.Code != gate.CodeOtherOperation {
		t.Errorf("got %+v", job)
	}
	open(t, j, gate.AllowFile{})
	if job := mustRun(t, j, order("k", "true")); job.State != gate.JobFinished {
		t.Errorf("a denied key cannot be used later: %+v", job)
	}
}

func TestSameKeyIsSameJob(t *testing.T) {
	j, _ := newJobs(t)
	open(t, j, gate.AllowFile{})
	count := filepath.Join(t.TempDir(), "count")
	o := order("k", "sh", "-c", "echo x >>"+count+"; sleep 0.2; exit 7")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if job, err := j.Run(t.Context(), o, 0); err != nil || job.State != gate.JobFinished || job.Exit != 7 {
				t.Errorf("got %+v %v", job, err)
			}
		})
	}
	all.Wait()
	if _, err := j.Window.Close(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if job := mustRun(t, j, o); job.Exit != 7 { // recorded: no gate needed
		t.Errorf("got %+v", job)
	}
	if data, _ := os.ReadFile(count); string(data) != "x\n" {
		t.Errorf("ran %q", data)
	}
	if job := mustRun(t, j, order("k", "true")); job.State != gate.JobDenied || job.Code != gate.CodeBadRequest {
		t.Errorf("the key was given to another command: %+v", job)
	}
}

// proves Z3: of any number of operations that want a single-use window, exactly one gets it.
func TestSingleUseRunsOnce(t *testing.T) {
	j, _ := newJobs(t)
	open(t, j, gate.AllowFile{SingleUse: true})
	count := filepath.Join(t.TempDir(), "count")
	states := make([]string, 1000)
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() {
			job, err := j.Run(t.Context(), order(fmt.Sprint("k", i), "sh", "-c", "echo x >>"+count), 0)
			if err != nil {
				t.Error(err)
			}
			states[i] = job.State
		})
	}
	all.Wait()
	n := map[string]int{}
	for _, s := range states {
		n[s]++
	}
	if n[gate.JobFinished] != 1 || n[gate.JobDenied]+n[gate.JobBusy] != 999 {
		t.Errorf("states: %v", n)
	}
	if data, _ := os.ReadFile(count); string(data) != "x\n" {
		t.Errorf("ran %d times", strings.Count(string(data), "x"))
	}
}

func TestOneJobAtATime(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	first := order("first", "sh", "-c", "sleep 0.5")
	if job, err := j.Run(t.Context(), first, time.Millisecond); err != nil || job.State != gate.JobRunning {
		t.Fatalf("got %+v %v", job, err)
	}
	if job := mustRun(t, j, order("second", "true")); job.State != gate.JobBusy || !strings.Contains(job.Reason, "first") {
		t.Errorf("got %+v", job)
	}
	if job, err := j.Wait(t.Context(), "first"); err != nil || job.State != gate.JobFinished {
		t.Errorf("got %+v %v", job, err)
	}
	u.all.Wait()
	if job := mustRun(t, j, order("second", "true")); job.State != gate.JobFinished {
		t.Errorf("got %+v", job)
	}
	jobs, err := j.List(now().Add(-time.Hour))
	if err != nil || len(jobs) != 2 || jobs[0].Output != "" {
		t.Errorf("list: %+v %v", jobs, err)
	}
}

// A job whose process was killed is lost, not finished; while anything of it is left, it still counts as running.
func TestLostJob(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	u.lose, u.left = true, true
	if job, err := j.Run(t.Context(), order("k", "true"), 50*time.Millisecond); err != nil || job.State != gate.JobRunning {
		t.Errorf("with processes left: %+v %v", job, err)
	}
	if job := mustRun(t, j, order("other", "true")); job.State != gate.JobBusy {
		t.Errorf("with processes left: %+v", job)
	}
	u.left = false
	if job, err := j.Wait(t.Context(), "k"); err != nil || job.State != gate.JobLost {
		t.Errorf("got %+v %v", job, err)
	}
	if job := mustRun(t, j, order("k", "true")); job.State != gate.JobLost {
		t.Errorf("a lost job was run again: %+v", job)
	}
}

func TestJobThatNeverStartedCanBeRunAgain(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	u.fail = errors.New("no systemd")
	if _, err := j.Run(t.Context(), order("k", "true"), 0); err == nil {
		t.Error("no error")
	}
	if job, err := j.Wait(t.Context(), "k"); err != nil || job.State != gate.JobLost {
		t.Errorf("got %+v %v", job, err)
	}
	u.fail = nil
	if job := mustRun(t, j, order("k", "true")); job.State != gate.JobFinished {
		t.Errorf("got %+v", job)
	}
	if err := j.Work("k"); err == nil {
		t.Error("a job ran twice")
	}
}

func TestOutputIsBounded(t *testing.T) {
	j, _ := newJobs(t)
	open(t, j, gate.AllowFile{})
	job := mustRun(t, j, order("k", "sh", "-c", "i=0; while [ $i -lt 30000 ]; do echo 'line of forty bytes, more or less, number' $i; i=$((i+1)); done"))
	if len(job.Output) != maxTail || !strings.HasSuffix(job.Output, "number 29999\n") {
		t.Errorf("%d bytes, ends %q", len(job.Output), job.Output[len(job.Output)-20:])
	}
	var total int64
	for _, name := range []string{"output", "output.old"} {
		if st, err := os.Stat(filepath.Join(string(j.dir("k")), name)); err == nil {
			total += st.Size()
		}
	}
	if total == 0 || total > 2*maxOutput+64<<10 {
		t.Errorf("kept %d bytes", total)
	}
}

func TestCheckKey(t *testing.T) {
	for key, ok := range map[string]bool{"a": true, "run-1.node_a": true, strings.Repeat("x", 200): true,
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "ä": false, strings.Repeat("x", 201): false} {
		if err := CheckKey(key); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
		if back, is := keyOfUnit(UnitName(key)); is != ok || ok && back != key {
			t.Errorf("%q came back as %q %v", key, back, is)
		}
	}
}

func TestPrune(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{})
	mustRun(t, j, order("old", "true"))
	u.all.Wait()
	j.prune(now().Add(keepJobs))
	if !j.dir("old").exists() {
		t.Error("forgotten too early")
	}
	j.prune(now().Add(keepJobs + time.Second))
	if j.dir("old").exists() {
		t.Error("not forgotten")
	}
}
