package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	answerLimit = 10 * time.Second // for one answer, asking included
	askers      = 8                // at once; more wait
)

// listen makes the socket anew, for its owner alone.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", filepath.Dir(path), err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot replace %s: %w", path, err)
	}
	// Never open to others, not even for the moment before a chmod.
	old := unix.Umask(0o177)
	l, err := net.Listen("unix", path)
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	return l, nil
}

// serve sends everybody who connects one answer, asked for afresh, and hangs up.
func (d Daemon) serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // which also removes the socket
	defer stop()
	room := make(chan struct{}, askers)
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot answer on %s: %w", d.Socket, err)
		}
		room <- struct{}{}
		go func() {
			defer func() { <-room }()
			if err := d.answer(ctx, conn); err != nil {
				d.Log.say(levelWarning, err.Error(), nil)
			}
		}()
	}
}

func (d Daemon) answer(ctx context.Context, conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	s, err := d.Status(ctx)
	if err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the answer: %w", err)
	}
	if _, err := conn.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("cannot answer: %w", err)
	}
	return nil
}
