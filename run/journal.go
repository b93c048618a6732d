package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Names of a run's files, on the operator's machine and on the ctrl host alike.
const (
	planFile    = "plan.json.gz"
	journalFile = "journal.jsonl"
)

// File is a journal on the operator's machine: JSON lines, each on disk before Append returns. The plan lies beside it.
type File struct {
	mu sync.Mutex
	f  *os.File
}

// OpenFile opens or makes the journal of a plan's run below dir, for its owner's eyes only. The whole plan is kept beside it, once.
func OpenFile(dir string, p plan.Plan) (*File, error) {
	at := filepath.Join(dir, "runs", p.ID)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, fmt.Errorf("cannot keep a journal: %w", err)
	}
	if _, err := os.Stat(filepath.Join(at, planFile)); err != nil {
		data, err := packPlan(p)
		if err != nil {
			return nil, err
		}
		if err := renameio.WriteFile(filepath.Join(at, planFile), data, 0o600); err != nil {
			return nil, fmt.Errorf("cannot keep the plan: %w", err)
		}
	}
	f, err := os.OpenFile(filepath.Join(at, journalFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot keep a journal: %w", err)
	}
	return &File{f: f}, nil
}

// Append writes one event and waits for the disk.
func (j *File) Append(_ context.Context, e Event, _ bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := line(e)
	if err != nil {
		return err
	}
	if _, err := j.f.Write(text); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("cannot write the journal to disk: %w", err)
	}
	return nil
}

// line is an event as it is kept: on a line of its own even after a line that was cut off, and without the plan.
func line(e Event) ([]byte, error) {
	e.Plan = nil
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("cannot write event %d: %w", e.Seq, err)
	}
	return append(append([]byte("\n"), text...), '\n'), nil
}

// Close closes the file.
func (j *File) Close() error { return j.f.Close() }

// Mirror keeps the journal in the file and a copy on the ctrl host, so that a colleague or the next job can go on.
// The copy is sent where the walk asks for it: before anything is changed, and at the end.
type Mirror struct {
	File  *File
	Fleet Fleet
	Host  string           // the ctrl host
	Dir   string           // kibo_state_dir there
	Plan  plan.Plan        // the whole of it
	Keep  bool             // the run goes on being the unfinished one even when this walk is done: hosts were left out
	Warn  func(error)      // told when the copy cannot be kept
	Now   func() time.Time // for not asking a host that did not answer again and again

	mu   sync.Mutex
	wait bytes.Buffer
	down time.Time // when the copy could not be sent
}

// Bounds of sending the copy: what a ctrl host that hangs may cost.
const (
	copyTime  = 15 * time.Second
	copyAgain = 30 * time.Second
)

// Append keeps the event in the file, and sends what has not been sent yet when sync is asked for.
func (m *Mirror) Append(ctx context.Context, e Event, sync bool) error {
	if err := m.File.Append(ctx, e, sync); err != nil {
		return err
	}
	text, err := line(e)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wait.Write(text)
	if !sync || m.Now().Sub(m.down) < copyAgain {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	if err := m.send(ctx, e); err != nil {
		m.down = m.Now()
		m.Warn(fmt.Errorf("cannot keep the copy of the journal on %s: %w", m.Host, err))
		return nil // the file on this machine is the record; the copy is for colleagues
	}
	m.wait.Reset()
	return nil
}

func (m *Mirror) send(ctx context.Context, e Event) error {
	conn, err := m.Fleet.Conn(ctx, m.Host)
	if err != nil {
		return err
	}
	b := command.Batch{StopOnFailure: true}
	if e.Kind == RunStarted {
		taken, err := m.sendPlan(ctx, conn)
		if err != nil {
			return err
		}
		b.Commands = append(b.Commands, taken...)
	}
	b.Commands = append(b.Commands, appendTo(recordFile(m.Dir, m.Plan.ID, journalFile), m.wait.Bytes()))
	if (e.Kind == RunDone || e.Kind == RunAbandoned) && !m.Keep {
		b.Commands = append(b.Commands, root("rm", "-f", currentFile(m.Dir)))
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

// sendPlan uploads the plan and returns what gives it its place and marks the run as the unfinished one, in this order.
func (m *Mirror) sendPlan(ctx context.Context, conn remote.Conn) ([]command.Command, error) {
	data, err := packPlan(m.Plan)
	if err != nil {
		return nil, err
	}
	at := ".kibo-rollout-" + m.Plan.ID + "-" + planFile
	err = conn.Upload(ctx, remote.Upload{Source: bytes.NewReader(data), Size: int64(len(data)), SHA256: sum(data), Path: at, Mode: 0o600})
	if err != nil {
		return nil, err
	}
	current := root("dd", "of="+currentFile(m.Dir), "conv=fsync", "status=none")
	current.Stdin = []byte(m.Plan.ID + "\n")
	return []command.Command{
		root("mkdir", "-p", "-m", "0755", filepath.Join(m.Dir, "runs", m.Plan.ID)),
		root("install", "-o", "root", "-g", "root", "-m", "0644", at, recordFile(m.Dir, m.Plan.ID, planFile)),
		{Argv: []string{"rm", "-f", at}, Effect: command.Changes},
		current,
	}, nil
}

func recordFile(dir, id, file string) string { return filepath.Join(dir, "runs", id, file) }

func currentFile(dir string) string { return filepath.Join(dir, "runs", "current") }

func appendTo(file string, lines []byte) command.Command {
	c := root("dd", "of="+file, "oflag=append", "conv=notrunc,fsync", "status=none")
	c.Stdin = bytes.Clone(lines)
	return c
}

func root(argv ...string) command.Command {
	return command.Command{Argv: argv, As: command.Root, Effect: command.Changes}
}
