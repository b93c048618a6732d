package remotetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Stub is what a Fake answers to one command line.
type Stub struct {
	Line   string // as Command.String shows it
	Result command.Result
	Err    error // a transport error instead of a result
	Times  int   // how often it is to be used; 0: once; -1: any number, at least once
}

// Fake is a host that knows nothing but its stubs. A command without a stub fails the test, and so does a stub
// that was not used.
type Fake struct {
	Host string

	t     testing.TB
	mu    sync.Mutex
	stubs []*stub
	lines []string
	files map[string][]byte
	gone  bool
}

type stub struct {
	Stub
	used int
}

var _ remote.Conn = (*Fake)(nil)

// NewFake returns a host with the stubs, used in order among those of the same line.
func NewFake(t testing.TB, host string, stubs ...Stub) *Fake {
	t.Helper()
	f := &Fake{Host: host, t: t, files: map[string][]byte{}}
	for _, s := range stubs {
		f.stubs = append(f.stubs, &stub{Stub: s})
	}
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, s := range f.stubs {
			if s.used == 0 || s.Times > 0 && s.used < s.Times {
				t.Errorf("host %s: stub used %d times only: %s", host, s.used, s.Line)
			}
		}
	})
	return f
}

// OK is a stub for a command that prints stdout and ends with 0.
func OK(line, stdout string) Stub {
	return Stub{Line: line, Result: command.Result{Stdout: []byte(stdout)}}
}

// Fails is a stub for a command that prints stderr and ends with exit.
func Fails(line string, exit int, stderr string) Stub {
	return Stub{Line: line, Result: command.Result{Exit: exit, Stderr: []byte(stderr)}}
}

// Lines are the commands run so far, in order.
func (f *Fake) Lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// File is what was uploaded to path.
func (f *Fake) File(path string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.files[path]
	return data, ok
}

func (f *Fake) answer(ctx context.Context, c command.Command) (command.Result, error) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return command.Result{}, &remote.Error{Host: f.Host, Kind: remote.Lost, Err: errors.New("closed")}
	}
	if err := ctx.Err(); err != nil {
		return command.Result{}, &remote.Error{Host: f.Host, Kind: remote.TimedOut, Err: err}
	}
	line := c.String()
	f.lines = append(f.lines, line)
	for _, s := range f.stubs {
		if s.Line == line && (s.Times < 0 || s.used < max(s.Times, 1)) {
			s.used++
			return s.Result, s.Err
		}
	}
	f.t.Errorf("host %s: no stub left for %s", f.Host, line)
	return command.Result{Exit: 127, Stderr: []byte("no stub for " + line)}, nil
}

// Run implements remote.Conn.
func (f *Fake) Run(ctx context.Context, c command.Command) (command.Result, error) {
	f.t.Helper()
	return f.answer(ctx, c)
}

// RunBatch implements remote.Conn.
func (f *Fake) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	f.t.Helper()
	var results []command.Result
	for _, c := range b.Commands {
		r, err := f.answer(ctx, c)
		if err != nil {
			return results, err
		}
		results = append(results, r)
		if b.StopOnFailure && r.Exit != 0 {
			break
		}
	}
	return results, nil
}

// Upload implements remote.Conn; the file can be looked at with File.
func (f *Fake) Upload(_ context.Context, u remote.Upload) error {
	data, err := io.ReadAll(io.NewSectionReader(u.Source, 0, u.Size))
	if err != nil {
		return &remote.Error{Host: f.Host, Kind: remote.BadTransfer, Err: err}
	}
	if sum := hexSum(data); sum != u.SHA256 {
		return &remote.Error{Host: f.Host, Kind: remote.BadTransfer, Err: fmt.Errorf("checksum %s, not %s", sum, u.SHA256)}
	}
	f.mu.Lock()
	f.files[u.Path] = data
	f.mu.Unlock()
	if u.Progress != nil {
		u.Progress(u.Size, u.Size)
	}
	return nil
}

// Hold implements remote.Conn. The stub's output is the first line; an exit other than 0 means it ended early.
func (f *Fake) Hold(ctx context.Context, c command.Command) (*remote.Held, error) {
	f.t.Helper()
	r, err := f.answer(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.Exit != 0 {
		return nil, &remote.Error{Host: f.Host, Kind: remote.Ended, Err: &remote.ExitError{Result: r}}
	}
	lost := make(chan struct{})
	var once sync.Once
	release := func() error {
		once.Do(func() { close(lost) })
		return nil
	}
	return &remote.Held{First: firstLine(r.Stdout), Lost: lost, Release: release}, nil
}

// Close implements remote.Conn.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	return nil
}
