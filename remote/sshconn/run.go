package sshconn

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// grace is how long output may still arrive after the shell has exited: a child that was left behind can
// hold the streams open for ever.
const grace = time.Second

// Run implements remote.Conn.
func (c *Conn) Run(ctx context.Context, cmd command.Command) (command.Result, error) {
	results, err := c.RunBatch(ctx, command.Batch{Commands: []command.Command{cmd}})
	if len(results) == 1 {
		return results[0], err
	}
	return command.Result{}, err
}

// RunBatch implements remote.Conn: one exec, whatever the number of commands. With an error the results are those
// of the commands that are known to have ended; with Kind Become they may be all of them.
func (c *Conn) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	if len(b.Commands) == 0 {
		return nil, nil
	}
	nonce := newNonce()
	frames := make(chan struct{}, 1)
	out := command.NewCollector(len(b.Commands), nonce, command.CollectorOptions{
		Now: c.d.now,
		Changed: func() {
			select {
			case frames <- struct{}{}:
			default:
			}
		},
	})
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var ended <-chan struct{}
	if b.NeedsBecome() && len(c.cfg.BecomePassword) > 0 {
		ended, err = c.startElevated(ctx, s, nonce, b.ElevatedScript(nonce), out)
	} else {
		ended, err = c.start(ctx, s, b.Script(nonce), out)
	}
	if err != nil {
		return nil, err
	}
	err = c.await(ctx, s, b, out, frames, ended)
	results, parseErr := out.Results()
	if err != nil {
		return results, err
	}
	if parseErr != nil {
		return results, c.cut(s, out, parseErr)
	}
	return results, c.refusals(b, results)
}

// start runs a script in the login user's shell.
func (c *Conn) start(ctx context.Context, s *session, script []byte, out *command.Collector) (<-chan struct{}, error) {
	if err := c.exec(ctx, s, command.ShellLine); err != nil {
		return nil, err
	}
	ended := s.pump(out.Stdout(), out.Stderr())
	go func() {
		_, _ = s.Write(script)
		_ = s.CloseWrite()
	}()
	return ended, nil
}

// await returns nil when there is no more output to wait for, and an error when waiting ended before that.
func (c *Conn) await(ctx context.Context, s *session, b command.Batch, out *command.Collector, frames, ended <-chan struct{}) error {
	limit := func(i int) time.Duration {
		if t := b.Commands[max(i, 0)].Timeout; t > 0 {
			return t
		}
		return c.cfg.CommandTimeout
	}
	last := -1
	timer := time.NewTimer(limit(0))
	defer timer.Stop()
	for {
		running, complete := out.Running()
		if complete {
			s.settle(grace / 4)
			return nil
		}
		if running != last {
			last = running
			timer.Reset(limit(running))
		}
		select {
		case <-frames:
		case <-ended: // whether the output is complete is for the caller to see
			s.settle(grace)
			return nil
		case <-s.exited:
			select {
			case <-ended:
			case <-time.After(grace):
			}
			return nil
		case <-timer.C:
			return c.fail(remote.TimedOut, "", "no end of %q within %s; it may still be running", b.Commands[max(running, 0)], limit(running))
		case <-ctx.Done():
			return c.ended(ctx)
		case <-c.lost:
			return c.lostError()
		}
	}
}

// orLost returns err, or the loss of the connection: streams also end when the connection goes.
func (c *Conn) orLost(err error) error {
	if c.isLost() {
		return c.lostError()
	}
	return err
}

// settle waits for the exit status, at most d.
func (s *session) settle(d time.Duration) {
	select {
	case <-s.exited:
	case <-time.After(d):
	}
}

// cut explains output that ended before the script did.
func (c *Conn) cut(s *session, out *command.Collector, err error) error {
	s.settle(grace)
	if c.isLost() {
		return c.lostError()
	}
	running, _ := out.Running()
	if running >= 0 || !errors.Is(err, command.ErrIncomplete) {
		return c.fail(remote.Lost, "", "the shell ended while a command ran (status %d): %w", s.exit(), err)
	}
	said := out.Noise()
	next := ""
	if strings.Contains(strings.ToLower(said), "password") && strings.Contains(strings.ToLower(said), "expired") ||
		strings.Contains(said, "Password change required") {
		return c.fail(remote.Auth, "", "the password of user %s has expired, so the host runs no command: %s", c.cfg.User, oneLine(said))
	}
	return c.fail(remote.Auth, next, "the login shell of user %s ran nothing (status %d): %s", c.cfg.User, s.exit(), oneLine(said))
}

// maxSaid bounds what a message quotes of a host, in bytes.
const maxSaid = 500

// oneLine makes a quotation of what somebody else said: one line of printable text, not too long.
func oneLine(s string) string {
	if len(s) > maxSaid {
		s = s[:maxSaid] + "…"
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if s == "" {
		return "it said nothing"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
