package sshconn

import (
	"context"
	"encoding/binary"
	"errors"
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
	if err != nil {
		release()
		return nil, err
	}
	s := &session{Channel: ch, exited: make(chan struct{}), status: -1, release: release}
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
	for wait := 50 * time.Millisecond; ; wait *= 2 {
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
		}
		var refused *ssh.OpenChannelError
		switch {
		case o.err == nil:
			return o.ch, o.reqs, nil
		case !errors.As(o.err, &refused): // not an answer of the host: the connection is broken
			c.setWhy(o.err)
			return nil, nil, c.lostError()
		case wait > 5*time.Second:
			return nil, nil, c.fail(remote.Unreachable, "", "cannot open a session (MaxSessions of sshd?): %w", o.err)
		}
		select {
		case <-time.After(wait):
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
func (s *session) exec(line string) error {
	ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{line}))
	if err == nil && !ok {
		err = errors.New("the host refuses to run commands")
	}
	return err
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
