package sshconn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// becomeLimit is how long sudo may take to ask or to let us in.
const becomeLimit = 30 * time.Second

// becomeGuard tries each password on one host first, and nowhere again once it was wrong: accounts lock. sudo is not
// even started on the others meanwhile: a question that nobody answers counts as a wrong answer too.
type becomeGuard struct {
	mu     sync.Mutex
	trials map[[sha256.Size]byte]*trial
}

// trial is what is known of one password.
type trial struct {
	turn         chan struct{} // holds one token while a host tries
	known, right bool          // set by whoever holds the token; read with it, or once known
}

var errWrongBefore = errors.New("the become password was refused before; it is not tried again, so that no account gets locked")

// enter returns once the password may be tried. verdict must be called, with nil if sudo never said.
func (g *becomeGuard) enter(ctx context.Context, password []byte) (verdict func(right *bool), err error) {
	t := g.trial(sha256.Sum256(password))
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case t.known && !t.right:
		<-t.turn
		return nil, errWrongBefore
	case t.known:
		<-t.turn
		return func(*bool) {}, nil
	}
	return func(right *bool) {
		if right != nil {
			t.known, t.right = true, *right
		}
		<-t.turn
	}, nil
}

func (g *becomeGuard) trial(sum [sha256.Size]byte) *trial {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.trials[sum]
	if !ok {
		if g.trials == nil {
			g.trials = map[[sha256.Size]byte]*trial{}
		}
		t = &trial{turn: make(chan struct{}, 1)}
		g.trials[sum] = t
	}
	return t
}

// spotter passes a stream on and reports each time a text appears in it.
type spotter struct {
	w    io.Writer
	text []byte
	tail []byte
	hits chan<- struct{}
}

func (s *spotter) Write(p []byte) (int, error) {
	s.tail = append(s.tail, p...)
	for {
		at := bytes.Index(s.tail, s.text)
		if at < 0 {
			break
		}
		s.tail = s.tail[at+len(s.text):]
		select {
		case s.hits <- struct{}{}:
		default:
		}
	}
	if keep := len(s.text) - 1; len(s.tail) > keep {
		s.tail = append([]byte(nil), s.tail[len(s.tail)-keep:]...)
	}
	return s.w.Write(p)
}

// startElevated runs a script through a sudo that may ask for a password. The password goes to sudo's standard
// input only after sudo has asked, the script only after the shell runs.
func (c *Conn) startElevated(ctx context.Context, s *session, nonce string, script []byte, out *command.Collector) (<-chan struct{}, error) {
	ended, err := c.elevate(ctx, s, nonce, out.Stdout(), out.Stderr(), func() string { return out.Noise() })
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = s.Write(script)
		_ = s.CloseWrite()
	}()
	return ended, nil
}

func (c *Conn) elevate(
	ctx context.Context, s *session, nonce string, stdout, stderr io.Writer, said func() string,
) (<-chan struct{}, error) {
	verdict, err := c.d.become.enter(ctx, c.cfg.BecomePassword)
	switch {
	case errors.Is(err, errWrongBefore):
		return nil, c.fail(remote.Become, "", "%w", err)
	case err != nil:
		return nil, c.ended(ctx)
	}
	var right *bool
	defer func() { verdict(right) }()
	prompt := "[" + newNonce() + "] "
	if err := c.exec(ctx, s, command.BecomeLine(prompt, nonce)); err != nil {
		return nil, err
	}
	asked, ready := make(chan struct{}, 4), make(chan struct{}, 1)
	ended := s.pump(&spotter{w: stdout, text: []byte("\n" + nonce + " ready\n"), hits: ready},
		&spotter{w: stderr, text: []byte(prompt), hits: asked})
	timer := time.NewTimer(becomeLimit)
	defer timer.Stop()
	yes, no, times := true, false, 0
	for {
		select {
		case <-asked:
			if times++; times > 1 {
				right = &no
				return nil, c.fail(remote.Become, "", "sudo refuses the become password of user %s", c.cfg.User)
			}
			if _, err := s.Write(append(bytes.Clone(c.cfg.BecomePassword), '\n')); err != nil {
				return nil, c.orLost(c.fail(remote.Become, "", "sudo does not take the password: %w", err))
			}
		case <-ready:
			if times > 0 {
				right = &yes
			}
			return ended, nil
		case <-ended:
			s.settle(grace)
			if c.isLost() {
				return nil, c.lostError()
			}
			text := oneLine(strings.ReplaceAll(said(), strings.TrimSpace(prompt), ""))
			if times > 0 && !refusal.MatchString(said()) { // it took the password, and ended: not because of a rule
				right = &no
			}
			return nil, c.fail(remote.Become, "", "sudo lets user %s run nothing: %s", c.cfg.User, text)
		case <-timer.C:
			return nil, c.fail(remote.Become, "", "sudo gave no answer within %s", becomeLimit)
		case <-ctx.Done():
			return nil, c.ended(ctx)
		case <-c.lost:
			return nil, c.lostError()
		}
	}
}

// refusal is what sudo says, with LC_ALL=C, when it did not run the command.
var refusal = regexp.MustCompile(`(?m)^(sudo: (a password is required|a terminal is required|no tty present|sorry, you must have a tty|` +
	`unknown user|account validation failure|PAM |no valid sudoers|unable to initialize policy|.*is not in the sudoers).*` +
	`|Sorry, user .* (is not allowed to execute|may not run sudo).*|.* is not in the sudoers file\..*|.*sudo: (not found|command not found))$`)

// refusals finds the first command that sudo did not run: its result is not the command's.
func (c *Conn) refusals(b command.Batch, results []command.Result) error {
	for i, r := range results {
		if b.Commands[i].As == command.Login || r.Exit != 1 && r.Exit != 127 {
			continue
		}
		said := refusal.Find(r.Stderr)
		if said == nil {
			continue
		}
		text := oneLine(string(said))
		switch {
		case bytes.Contains(said, []byte("must have a tty")), bytes.Contains(said, []byte("no tty present")):
			return c.fail(remote.Become, "", "requiretty is set for sudo of user %s, cannot run %q: %s", c.cfg.User, b.Commands[i], text)
		case bytes.Contains(said, []byte("password is required")), bytes.Contains(said, []byte("terminal is required")):
			return c.fail(remote.Become, "", "sudo of user %s needs a password for %q: give one with --ask-become-pass", c.cfg.User, b.Commands[i])
		}
		return c.fail(remote.Become, "", "sudo of user %s does not run %q: %s", c.cfg.User, b.Commands[i], text)
	}
	return nil
}
