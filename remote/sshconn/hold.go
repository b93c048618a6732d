package sshconn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Bounds for held commands.
const (
	releaseLimit = 5 * time.Second
	maxHeldText  = 64 << 10
)

// Hold implements remote.Conn. If the command ends before its first line the error wraps a *remote.ExitError.
func (c *Conn) Hold(ctx context.Context, cmd command.Command) (*remote.Held, error) {
	limit := cmd.Timeout
	if limit <= 0 {
		limit = c.cfg.CommandTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h, err := c.startHeld(ctx, cmd)
	if err != nil {
		return nil, err
	}
	first, err := h.firstLine(ctx)
	if err != nil {
		h.s.close()
		return nil, err
	}
	h.s.hold()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		select {
		case <-h.ended:
		case <-h.s.exited:
		case <-h.s.on.lost:
		}
	}()
	var once sync.Once
	release := func() error {
		var err error
		once.Do(func() {
			_ = h.s.CloseWrite()
			select {
			case <-lost:
			case <-time.After(releaseLimit):
				err = c.fail(remote.TimedOut, "", "%q did not end within %s of its release", cmd, releaseLimit)
			}
			h.s.close()
		})
		return err
	}
	return &remote.Held{First: first, Lost: lost, Release: release}, nil
}

// held is a command whose standard input is open.
type held struct {
	c      *Conn
	s      *session
	nonce  string
	cmd    command.Command
	lines  <-chan string // its output, from the begin frame on; closed at the end
	stderr *tail
	ended  <-chan struct{}
}

// startHeld runs the command up to its begin frame: what is written to the session from then on is its input.
func (c *Conn) startHeld(ctx context.Context, cmd command.Command) (*held, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	nonce := newNonce()
	r, w := io.Pipe()
	lines := make(chan string, 1) // so that its reader never waits for us
	h := &held{c: c, s: s, nonce: nonce, cmd: cmd, lines: lines, stderr: &tail{}}
	elevated := cmd.As != command.Login && len(c.cfg.BecomePassword) > 0
	begun := make(chan struct{})
	go readHeld(r, nonce, begun, lines)
	if elevated {
		h.ended, err = c.elevate(ctx, s, nonce, w, h.stderr, h.stderr.String)
	} else if err = c.exec(ctx, s, command.ShellLine); err == nil {
		h.ended = s.pump(w, h.stderr)
	}
	if err != nil {
		_ = w.Close()
		s.close()
		return nil, err
	}
	go func() {
		<-h.ended
		_ = w.Close()
	}()
	go func() { _, _ = s.Write(cmd.HeldScript(nonce, elevated)) }()
	select {
	case <-begun:
		return h, nil
	case <-h.ended:
		err = h.early()
	case <-ctx.Done():
		err = c.ended(ctx)
	case <-c.lost:
		err = c.lostError()
	}
	s.close()
	return nil, err
}

// readHeld skips to the begin frame, then offers the first line and drops the rest.
func readHeld(r io.Reader, nonce string, begun chan<- struct{}, lines chan<- string) {
	defer close(lines)
	in := bufio.NewReaderSize(r, maxHeldText)
	for {
		line, err := in.ReadSlice('\n')
		if string(line) == nonce+" b 0\n" {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
	close(begun)
	line, err := in.ReadSlice('\n')
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		lines <- strings.TrimSuffix(string(line), "\n")
	}
	_, _ = io.Copy(io.Discard, in)
}

func (h *held) firstLine(ctx context.Context) (string, error) {
	select {
	case line, ok := <-h.lines:
		if ok {
			return line, nil
		}
		return "", h.early()
	case <-ctx.Done():
		return "", h.c.ended(ctx)
	case <-h.c.lost:
		return "", h.c.lostError()
	}
}

// said is the command's standard error: what came after the begin frame.
func (h *held) said() string {
	text := h.stderr.String()
	if _, after, ok := strings.Cut(text, h.nonce+" b 0\n"); ok {
		return after
	}
	return text
}

// early is the error of a command that ended before its first line.
func (h *held) early() error {
	h.s.settle(grace)
	if h.c.isLost() {
		return h.c.lostError()
	}
	if h.s.exit() < 0 {
		return h.c.fail(remote.Lost, "", "%q ended without an exit status", h.cmd)
	}
	result := command.Result{Exit: h.s.exit(), Stderr: []byte(h.said())}
	if err := h.c.refusals(command.Batch{Commands: []command.Command{h.cmd}}, []command.Result{result}); err != nil {
		return err
	}
	return h.c.fail(remote.Ended, "", "cannot hold %q: %w", h.cmd, &remote.ExitError{Result: result})
}

// tail keeps the start of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[:min(len(p), maxHeldText-len(t.kept))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
