package sshconn

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
)

// Conn is one connection to one host. It implements remote.Conn.
type Conn struct {
	d      *Dialer
	cfg    Config
	client *ssh.Client
	via    *Conn // the jump host; closed with this connection
	slots  chan struct{}
	holds  atomic.Int32 // sessions that stay open for long

	sparing sync.Mutex
	spare   *Conn // a second connection, if the host makes it necessary
	depth   int   // how many connections came before this one

	lost chan struct{} // closed when the connection is gone
	mu   sync.Mutex
	why  error // valid once lost is closed
}

var _ remote.Conn = (*Conn)(nil)

func newConn(d *Dialer, cfg Config, client *ssh.Client, via *Conn) *Conn {
	c := &Conn{d: d, cfg: cfg, client: client, via: via, slots: make(chan struct{}, cfg.MaxSessions), lost: make(chan struct{})}
	go func() {
		err := client.Wait()
		c.setWhy(err)
		close(c.lost)
	}()
	go c.keepalive()
	return c
}

// keepalive notices a peer that is gone without a word, and keeps idle links open.
func (c *Conn) keepalive() {
	tick := time.NewTicker(c.cfg.Keepalive)
	defer tick.Stop()
	answers := make(chan error, 1)
	waiting, missed := false, 0
	for {
		select {
		case <-c.lost:
			return
		case <-answers: // a refusal is an answer too
			waiting, missed = false, 0
		case <-tick.C:
			if waiting {
				if missed++; missed >= c.cfg.KeepaliveCount {
					c.setWhy(fmt.Errorf("no answer to %d keepalives, %s apart", missed, c.cfg.Keepalive))
					_ = c.client.Close()
					return
				}
				continue
			}
			waiting = true
			go func() {
				_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
				answers <- err
			}()
		}
	}
}

func (c *Conn) setWhy(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.why = err
	}
}

// Lost is closed when the connection is gone, closed by either side.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// Close ends the connection and those it goes through.
func (c *Conn) Close() error {
	err := c.client.Close()
	if errors.Is(err, errClosed) {
		err = nil
	}
	closeConn(c.via)
	c.sparing.Lock()
	defer c.sparing.Unlock()
	closeConn(c.spare)
	return err
}

func (c *Conn) fail(kind remote.Kind, next, format string, args ...any) *remote.Error {
	return &remote.Error{Host: c.cfg.Host, Kind: kind, Err: fmt.Errorf(format, args...), Next: next}
}

// lostError is the error of whatever was under way when the connection went.
func (c *Conn) lostError() *remote.Error {
	c.mu.Lock()
	why := c.why
	c.mu.Unlock()
	if why == nil {
		why = errors.New("connection closed")
	}
	return c.fail(remote.Lost, "", "connection lost: %w", why)
}

// isLost tells if the connection is gone. It is asked when something broke: channels break a moment before the
// connection is known to be gone, so it waits for that moment.
func (c *Conn) isLost() bool {
	select {
	case <-c.lost:
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// ended turns the end of a context into an error: a time limit is one of ours, a cancellation the caller's.
func (c *Conn) ended(ctx context.Context) *remote.Error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return c.fail(remote.TimedOut, "", "%w", cause)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return c.fail(remote.TimedOut, "", "time limit reached: %w", ctx.Err())
	}
	return c.fail(remote.Lost, "", "stopped waiting: %w", ctx.Err())
}

// newNonce is what frames the output of one script.
func newNonce() string { return "kibo" + rand.Text() }
