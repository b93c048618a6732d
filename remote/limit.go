package remote

import (
	"context"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// Slots bound how much happens at a time, over any number of connections. Safe for concurrent use.
type Slots struct{ free chan struct{} }

// NewSlots returns n slots, at least one.
func NewSlots(n int) *Slots { return &Slots{free: make(chan struct{}, max(n, 1))} }

// Take waits for a slot; release gives it back.
func (s *Slots) Take(ctx context.Context) (release func(), err error) {
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Limit makes every command and upload take one of the slots. Held commands do not keep theirs: they wait, and
// others must not wait for them.
func Limit(host string, c Conn, s *Slots) Conn { return &limited{inner: c, host: host, slots: s} }

type limited struct {
	inner Conn
	host  string
	slots *Slots
}

func (l *limited) take(ctx context.Context) (func(), error) {
	release, err := l.slots.Take(ctx)
	if err != nil {
		return nil, &Error{Host: l.host, Kind: TimedOut, Err: err}
	}
	return release, nil
}

func (l *limited) Run(ctx context.Context, c command.Command) (command.Result, error) {
	release, err := l.take(ctx)
	if err != nil {
		return command.Result{}, err
	}
	defer release()
	return l.inner.Run(ctx, c)
}

func (l *limited) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	release, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return l.inner.RunBatch(ctx, b)
}

func (l *limited) Upload(ctx context.Context, u Upload) error {
	release, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return l.inner.Upload(ctx, u)
}

func (l *limited) Hold(ctx context.Context, c command.Command) (*Held, error) {
	release, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return l.inner.Hold(ctx, c)
}

func (l *limited) Close() error { return l.inner.Close() }
