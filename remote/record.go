package remote

import (
	"context"
	"slices"
	"sync"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// Call is one thing asked of a host: a command, or an upload to Path.
type Call struct {
	Host    string
	Command command.Command
	Path    string
}

// Recorder remembers calls, in order. The zero value is ready. Safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
}

// Calls are those so far.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

func (r *Recorder) add(calls ...Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, calls...)
}

// Record passes everything on and writes it down first.
func Record(host string, c Conn, r *Recorder) Conn { return &recorded{inner: c, host: host, r: r} }

type recorded struct {
	inner Conn
	host  string
	r     *Recorder
}

func (d *recorded) Run(ctx context.Context, c command.Command) (command.Result, error) {
	d.r.add(Call{Host: d.host, Command: c})
	return d.inner.Run(ctx, c)
}

func (d *recorded) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	calls := make([]Call, 0, len(b.Commands))
	for _, c := range b.Commands {
		calls = append(calls, Call{Host: d.host, Command: c})
	}
	d.r.add(calls...)
	return d.inner.RunBatch(ctx, b)
}

func (d *recorded) Upload(ctx context.Context, u Upload) error {
	d.r.add(Call{Host: d.host, Path: u.Path})
	return d.inner.Upload(ctx, u)
}

func (d *recorded) Hold(ctx context.Context, c command.Command) (*Held, error) {
	d.r.add(Call{Host: d.host, Command: c})
	return d.inner.Hold(ctx, c)
}

func (d *recorded) Close() error { return d.inner.Close() }
