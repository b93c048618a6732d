package sshconn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
)

var errClosed = net.ErrClosed

// session is one channel that runs one command line. Unlike the library's, its exit is known as soon as the
// host reports it, even if a child that was left behind keeps the output open.
type session struct {
	ssh.Channel
	exited  chan struct{} // closed once status is known, or the channel is gone
	status  int           // -1: none was reported; read through exit
	release func()
	on      *Conn // the connection it is on
	held    bool  // counted among the connection's held sessions
}

// startLimit is how long a host may take to open a session, and to start a command in it.
const startLimit = 30 * time.Second

// maxRefusals is how often in a row a host may refuse a session when none of ours is open: one that has just ended may
// still count.
const maxRefusals = 12

// maxSpares bounds the connections to a host that allows few sessions on each.
const maxSpares = 3

// errOnlyHeld: the host allows no further session, and those that are open stay open for long.
var errOnlyHeld = errors.New("all sessions that the host allows are held")

// hold counts the session among those that stay open for long, until it is closed.
func (s *session) hold() {
	s.held = true
	s.on.holds.Add(1)
}

// another is a second connection, for hosts that allow as few sessions as are held on this one.
func (c *Conn) another(ctx context.Context) (*Conn, error) {
	c.sparing.Lock()
	defer c.sparing.Unlock()
	if c.spare != nil {
		select {
		case <-c.spare.lost:
			_ = c.spare.Close()
		default:
			return c.spare, nil
		}
	}
	spare, err := c.d.Dial(ctx, c.cfg)
	if err != nil {
		return nil, err
	}
	c.d.notice(fmt.Sprintf("host %s: sshd allows too few sessions a connection (MaxSessions); a second connection is used", c.cfg.Host))
	spare.depth = c.depth + 1
	c.spare = spare
	select {
	case <-c.lost: // closed meanwhile
		_ = spare.Close()
	default:
	}
	return spare, nil
}

// open takes one of the connection's slots and opens a channel in it.
func (c *Conn) open(ctx context.Context) (*session, error) {
	select {
	case c.slots <- struct{}{}:
	case <-c.lost:
		return nil, c.lostError()
	case <-ctx.Done():
		return nil, c.ended(ctx)
	}
	var once sync.Once
	release := func() { once.Do(func() { <-c.slots }) }
	ch, reqs, err := c.openChannel(ctx)
	if errors.Is(err, errOnlyHeld) {
		release()
		spare, err := c.another(ctx)
		if err != nil {
			return nil, err
		}
		return spare.open(ctx)
	}
	if err != nil {
		release()
		return nil, err
	}
	s := &session{Channel: ch, exited: make(chan struct{}), status: -1, release: release, on: c}
	go s.watch(reqs)
	return s, nil
}

// openChannel waits for a moment if the host allows fewer sessions than it has open.
func (c *Conn) openChannel(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	type opened struct {
		ch   ssh.Channel
		reqs <-chan *ssh.Request
		err  error
	}
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	for refusals := 1; ; refusals++ {
		result := make(chan opened, 1)
		go func() {
			ch, reqs, err := c.client.OpenChannel("session", nil)
			result <- opened{ch, reqs, err}
		}()
		var o opened
		select {
		case o = <-result:
		case <-c.lost:
			return nil, nil, c.lostError()
		case <-ctx.Done():
			go closeLate(func() ssh.Channel { return (<-result).ch })
			return nil, nil, c.ended(ctx)
		case <-timer.C:
			go closeLate(func() ssh.Channel { return (<-result).ch })
			return nil, nil, c.fail(remote.TimedOut, "", "cannot open a session: %w", errNoAnswer)
		}
		timer.Reset(startLimit)
		var refused *ssh.OpenChannelError
		switch {
		case o.err == nil:
			return o.ch, o.reqs, nil
		case !errors.As(o.err, &refused): // not an answer of the host: the connection is broken
			c.setWhy(o.err)
			return nil, nil, c.lostError()
		}
		switch open := len(c.slots) - 1; { // besides this one
		case open > int(c.holds.Load()): // one of ours will end
		case open > 0 && c.depth < maxSpares:
			return nil, nil, errOnlyHeld
		case refusals > maxRefusals && c.depth < maxSpares: // the host counts sessions that we gave up, too
			return nil, nil, errOnlyHeld
		case refusals > maxRefusals:
			return nil, nil, c.fail(remote.Unreachable, "", "cannot open a session: %s", oneLine(o.err.Error()))
		}
		select {
		case <-time.After(min(time.Duration(refusals)*25*time.Millisecond, 250*time.Millisecond)):
		case <-ctx.Done():
			return nil, nil, c.ended(ctx)
		}
	}
}

// closeLate closes a channel that nobody waits for any more.
func closeLate(get func() ssh.Channel) {
	if ch := get(); ch != nil {
		_ = ch.Close()
	}
}

func (s *session) watch(reqs <-chan *ssh.Request) {
	known := false
	for r := range reqs {
		switch {
		case r.Type == "exit-status" && len(r.Payload) >= 4 && !known:
			s.status = int(binary.BigEndian.Uint32(r.Payload))
			known = true
			close(s.exited)
		case r.Type == "exit-signal" && !known:
			s.status = 128
			known = true
			close(s.exited)
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
	if !known {
		close(s.exited)
	}
}

// exec starts a command line on the host.
func (c *Conn) exec(ctx context.Context, s *session, line string) error {
	ok, err := s.request(ctx, "exec", line)
	switch {
	case err == nil && ok:
		return nil
	case ctx.Err() != nil:
		return c.ended(ctx)
	case errors.Is(err, errNoAnswer):
		return c.fail(remote.TimedOut, "", "cannot start a shell: %w", err)
	case err == nil:
		err = errors.New("the host refuses to run commands")
	}
	return c.orLost(c.fail(remote.Auth, "", "cannot start a shell: %w", err))
}

var errNoAnswer = fmt.Errorf("no answer within %s, although the connection lives", startLimit)

// request asks for something to be started in the session.
func (s *session) request(ctx context.Context, kind, text string) (ok bool, err error) {
	type answer struct {
		ok  bool
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		ok, err := s.SendRequest(kind, true, ssh.Marshal(struct{ Text string }{text}))
		answers <- answer{ok, err}
	}()
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case a := <-answers:
		return a.ok, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
		return false, errNoAnswer
	}
}

// exit is the exit status, or -1 if none is known (yet).
func (s *session) exit() int {
	select {
	case <-s.exited:
		return s.status
	default:
		return -1
	}
}

func (s *session) close() {
	if s.held {
		s.held = false
		s.on.holds.Add(-1)
	}
	_ = s.Close()
	s.release()
}

// pump copies both output streams, and closes the returned channel when both have ended.
func (s *session) pump(stdout, stderr io.Writer) <-chan struct{} {
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = io.Copy(stdout, s.Channel) })
	wait.Go(func() { _, _ = io.Copy(stderr, s.Stderr()) })
	go func() {
		wait.Wait()
		close(done)
	}()
	return done
}
