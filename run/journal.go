package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// File is a journal on the operator's machine: JSON lines, each on disk before Append returns.
type File struct {
	mu sync.Mutex
	f  *os.File
}

// OpenFile opens or makes the journal of a run below dir, for its owner's eyes only.
func OpenFile(dir, id string) (*File, error) {
	at := filepath.Join(dir, "runs", id)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, fmt.Errorf("cannot keep a journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(at, "journal.jsonl"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot keep a journal: %w", err)
	}
	return &File{f: f}, nil
}

// Append writes one event and waits for the disk.
func (j *File) Append(_ context.Context, e Event, _ bool) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot write event %d: %w", e.Seq, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("cannot write the journal to disk: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *File) Close() error { return j.f.Close() }

// Mirror keeps the journal in the file and a copy on the ctrl host, so that a colleague or the next job can go on.
// The copy is sent where the walk asks for it: before anything is changed, and at the end.
type Mirror struct {
	File  *File
	Fleet Fleet
	Host  string // the ctrl host
	Dir   string // kibo_state_dir there
	ID    string
	Warn  func(error) // told when the copy cannot be kept

	mu   sync.Mutex
	wait bytes.Buffer
}

// Append keeps the event in the file, and sends what has not been sent yet when sync is asked for.
func (m *Mirror) Append(ctx context.Context, e Event, sync bool) error {
	if err := m.File.Append(ctx, e, sync); err != nil {
		return err
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("cannot write event %d: %w", e.Seq, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wait.Write(append(line, '\n'))
	if !sync {
		return nil
	}
	b := command.Batch{StopOnFailure: true}
	end := e.Kind == RunDone
	if e.Kind == RunStarted || e.Kind == RunResumed {
		b.Commands = append(b.Commands, makeRecord(m.Dir, m.ID)...)
	}
	b.Commands = append(b.Commands, appendTo(recordFile(m.Dir, m.ID, "journal.jsonl"), m.wait.Bytes()))
	if end {
		b.Commands = append(b.Commands, root("rm", "-f", currentFile(m.Dir)))
	}
	if err := m.send(ctx, b); err != nil {
		m.Warn(fmt.Errorf("cannot keep the copy of the journal on %s: %w", m.Host, err))
		return nil // the file on this machine is the record; the copy is for colleagues
	}
	m.wait.Reset()
	return nil
}

func (m *Mirror) send(ctx context.Context, b command.Batch) error {
	conn, err := m.Fleet.Conn(ctx, m.Host)
	if err != nil {
		return err
	}
	res, err := conn.RunBatch(ctx, b)
	if err != nil {
		return err
	}
	if n := len(res); n > 0 && res[n-1].Exit != 0 {
		return fmt.Errorf("`%s` ended with exit status %d: %.200q", b.Commands[n-1].String(), res[n-1].Exit, res[n-1].Stderr)
	}
	return nil
}

func recordFile(dir, id, file string) string { return filepath.Join(dir, "runs", id, file) }

func currentFile(dir string) string { return filepath.Join(dir, "runs", "current") }

// makeRecord makes the run's directory on ctrl and marks the run as the unfinished one.
func makeRecord(dir, id string) []command.Command {
	write := root("dd", "of="+currentFile(dir), "conv=fsync", "status=none")
	write.Stdin = []byte(id + "\n")
	return []command.Command{root("mkdir", "-p", "-m", "0755", filepath.Join(dir, "runs", id)), write}
}

func appendTo(file string, lines []byte) command.Command {
	c := root("dd", "of="+file, "oflag=append", "conv=notrunc,fsync", "status=none")
	c.Stdin = bytes.Clone(lines)
	return c
}

func root(argv ...string) command.Command {
	return command.Command{Argv: argv, As: command.Root, Effect: command.Changes}
}

// Record is an unfinished or finished run as its journal tells it.
type Record struct {
	Plan   plan.Plan
	Events []Event
}

// Decode reads a journal. A last line that was cut off is left out: it was never acted upon.
func Decode(data []byte) (Record, error) {
	var r Record
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			if i == len(lines)-1 {
				break
			}
			return r, fmt.Errorf("cannot read the journal, line %d: %w", i+1, err)
		}
		if e.Plan != nil {
			r.Plan = *e.Plan
		}
		r.Events = append(r.Events, e)
	}
	if r.Plan.ID == "" {
		return r, fmt.Errorf("cannot read the journal: it holds no plan")
	}
	return r, nil
}
