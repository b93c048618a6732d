package host

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// maxOutput is how much of a job's output is kept.
const maxOutput = 64 << 10

// job is one command that lives on when the connection that started it is gone.
type job struct {
	mu   sync.Mutex // guards job
	job  gate.Job
	req  gate.Request
	done chan struct{}
}

func (j *job) view() gate.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.job
}

func (m *Machine) agentRun(ctx context.Context, p *shell.Proc, o options) int {
	key := o.get("--key")
	if ok, _ := regexp.MatchString(`^[A-Za-z0-9._-]{1,200}$`, key); !ok || len(o.args) == 0 || !o.has("--operation") {
		return p.Fail(agentUsage, "run needs --key, --operation and a command")
	}
	req, err := gateRequest(o)
	if err != nil {
		return p.Fail(agentUsage, "%v", err)
	}
	j, refused := m.takeJob(key, req, o.args)
	if refused != nil {
		return m.answerJob(p, o, *refused)
	}
	select {
	case <-j.done:
	case <-ctx.Done():
	}
	return m.answerJob(p, o, j.view())
}

// takeJob joins the job with this key, or starts it if the gate is open and nothing else runs.
func (m *Machine) takeJob(key string, req gate.Request, argv []string) (*job, *gate.Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if j := m.jobs[key]; j != nil {
		return j, nil
	}
	answer := gate.Job{Key: key, Operation: req.Operation, Argv: argv}
	for _, other := range m.jobs {
		if v := other.view(); v.State == gate.JobRunning {
			answer.State, answer.Reason = gate.JobBusy, fmt.Sprintf("job %s is running", v.Key)
			return nil, &answer
		}
	}
	f, err := m.allowFile(gate.DefaultPath)
	if v := m.here().Decide(f, err, req); !v.Open {
		answer.State, answer.Code, answer.Reason = gate.JobDenied, v.Code, v.Reason
		return nil, &answer
	}
	if f.SingleUse {
		if err := m.fs.Remove(memfs.Cred{}, gate.DefaultPath); err != nil {
			answer.State, answer.Code, answer.Reason = gate.JobDenied, gate.CodeUsed, err.Error()
			return nil, &answer
		}
	}
	answer.State, answer.Started = gate.JobRunning, m.w.Now().UTC()
	j := &job{job: answer, req: req, done: make(chan struct{})}
	m.jobs[key] = j
	go m.runJob(j, argv)
	return j, nil
}

// runJob runs the command with the machine's own life time, as a transient unit does.
func (m *Machine) runJob(j *job, argv []string) {
	var out syncBuffer
	p, err := m.Proc("root", argv...)
	exit := exitNotFound
	if err == nil {
		p.Dir, p.Stdin, p.Stdout, p.Stderr = "/", strings.NewReader(""), &out, &out
		exit = m.Exec(m.ctx, p)
	}
	j.mu.Lock()
	j.job.State, j.job.Exit, j.job.Ended = gate.JobFinished, exit, m.w.Now().UTC()
	j.job.Output = out.tail(maxOutput)
	if m.Faults().JobsDieEarly {
		j.job.State, j.job.Exit, j.job.Reason = gate.JobLost, 0, "the job left no exit status"
	}
	j.mu.Unlock()
	close(j.done)
}

// jobOpened reports whether the job that runs now was let through the gate for this very request: the hooks of
// apt and dpkg below it then need no window of their own, which a single-use one could not give.
func (m *Machine) jobOpened(req gate.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs {
		if j.view().State == gate.JobRunning && j.req.Operation == req.Operation && maps.Equal(j.req.Packages, req.Packages) {
			return true
		}
	}
	return false
}

func (m *Machine) agentWait(ctx context.Context, p *shell.Proc, o options) int {
	m.mu.Lock()
	j := m.jobs[o.get("--key")]
	m.mu.Unlock()
	if j == nil {
		return m.answerJob(p, o, gate.Job{Key: o.get("--key"), State: gate.JobUnknown})
	}
	select {
	case <-j.done:
	case <-ctx.Done():
	}
	return m.answerJob(p, o, j.view())
}

func (m *Machine) answerJob(p *shell.Proc, o options, j gate.Job) int {
	if o.get("--output") == "json" {
		printJSON(p, j)
	} else {
		p.Printf("%s %s\n%s", j.Key, j.State, j.Output)
	}
	switch {
	case j.State == gate.JobFinished && j.Exit == 0:
		return 0
	case j.State == gate.JobDenied:
		return agentDenied
	case j.State == gate.JobBusy:
		return agentBusy
	}
	return agentFailed
}

// syncBuffer collects both streams of a job.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) tail(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.b.Bytes()
	return string(b[max(0, len(b)-n):])
}
