package remote

import (
	"context"
	"errors"
	"sync"
)

// Defaults of PoolOptions.
const (
	DefaultForks   = 50
	DefaultPerJump = 8
)

// PoolOptions say how a Pool connects.
type PoolOptions struct {
	// Dial connects to a host; its errors are *Error.
	Dial func(ctx context.Context, host string) (Conn, error)
	// Via names the jump host that a host is reached through, empty if there is none. nil: there are none.
	Via     func(host string) string
	Forks   int // connections being made at a time; 0: DefaultForks
	PerJump int // of those, through one jump host; 0: DefaultPerJump
}

// Pool keeps one connection a host, made when it is first asked for and again after it was lost. Safe for concurrent use.
type Pool struct {
	o     PoolOptions
	forks *Slots

	mu     sync.Mutex
	conns  map[string]*pooled
	jumps  map[string]*Slots
	closed bool
}

// pooled is a connection, or one that is being made.
type pooled struct {
	ready chan struct{} // closed when conn and err are set
	conn  Conn
	err   error
}

var errPoolClosed = errors.New("connections are closed already")

// NewPool returns an empty pool.
func NewPool(o PoolOptions) *Pool {
	if o.Forks <= 0 {
		o.Forks = DefaultForks
	}
	if o.PerJump <= 0 {
		o.PerJump = DefaultPerJump
	}
	if o.Via == nil {
		o.Via = func(string) string { return "" }
	}
	return &Pool{o: o, forks: NewSlots(o.Forks), conns: map[string]*pooled{}, jumps: map[string]*Slots{}}
}

// Conn returns the host's connection, and makes it if there is none. It belongs to the pool: callers do not close it.
// Failures are not kept; the next call tries again.
func (p *Pool) Conn(ctx context.Context, host string) (Conn, error) {
	for {
		entry, mine, err := p.entry(host)
		if err != nil {
			return nil, err
		}
		if mine {
			entry.conn, entry.err = p.dial(ctx, host)
			p.settle(host, entry)
			return entry.conn, entry.err
		}
		select {
		case <-entry.ready:
		case <-ctx.Done():
			return nil, &Error{Host: host, Kind: Unreachable, Err: ctx.Err()}
		}
		if entry.err == nil {
			return entry.conn, nil
		}
		if !errors.Is(entry.err, context.Canceled) { // another caller gave up, not the host
			return nil, entry.err
		}
	}
}

// entry finds the host's connection, or makes room for a new one, which is then the caller's to make.
func (p *Pool) entry(host string) (entry *pooled, mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, &Error{Host: host, Kind: Lost, Err: errPoolClosed}
	}
	if e, ok := p.conns[host]; ok && !e.lost() {
		return e, false, nil
	} else if ok {
		_ = e.conn.Close()
	}
	entry = &pooled{ready: make(chan struct{})}
	p.conns[host] = entry
	return entry, true, nil
}

// lost tells if the connection was made and is gone. Connections that cannot tell are taken to live.
func (e *pooled) lost() bool {
	select {
	case <-e.ready:
	default:
		return false
	}
	teller, ok := e.conn.(interface{ Lost() <-chan struct{} })
	if !ok {
		return false
	}
	select {
	case <-teller.Lost():
		return true
	default:
		return false
	}
}

// settle publishes the outcome. A pool that was closed meanwhile closes the connection at once.
func (p *Pool) settle(host string, e *pooled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.err == nil && p.closed {
		_ = e.conn.Close()
		e.conn, e.err = nil, &Error{Host: host, Kind: Lost, Err: errPoolClosed}
	}
	if e.err != nil && p.conns[host] == e {
		delete(p.conns, host)
	}
	close(e.ready)
}

func (p *Pool) dial(ctx context.Context, host string) (Conn, error) {
	if via := p.o.Via(host); via != "" { // the narrow gate first, so that those who wait there hold nothing else up
		p.mu.Lock()
		slots, ok := p.jumps[via]
		if !ok {
			slots = NewSlots(p.o.PerJump)
			p.jumps[via] = slots
		}
		p.mu.Unlock()
		release, err := slots.Take(ctx)
		if err != nil {
			return nil, &Error{Host: host, Kind: Unreachable, Err: err}
		}
		defer release()
	}
	release, err := p.forks.Take(ctx)
	if err != nil {
		return nil, &Error{Host: host, Kind: Unreachable, Err: err}
	}
	defer release()
	return p.o.Dial(ctx, host)
}

// Close closes all connections; those being made are closed when they are there.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, e := range p.conns {
		select {
		case <-e.ready:
			if e.err == nil {
				errs = append(errs, e.conn.Close())
			}
		default:
		}
	}
	p.conns = map[string]*pooled{}
	return errors.Join(errs...)
}
