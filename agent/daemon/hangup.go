package daemon

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// hangupStop wakes a waiting poll for good.
type hangupStop [2]int

// Hangup returns a context that ends when nobody reads the descriptor any more, as when an SSH connection is
// lost: a watcher that has nothing to say would never learn of it by writing. A file or terminal never ends it.
func Hangup(ctx context.Context, fd int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var stop hangupStop
	if unix.Pipe2(stop[:], unix.O_CLOEXEC) != nil {
		return ctx, cancel // then only writing tells
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		// No events are asked for: what is told without asking is that the other end is gone.
		fds := []unix.PollFd{{Fd: int32(fd)}, {Fd: int32(stop[0])}}
		for {
			_, err := unix.Poll(fds, -1)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return ctx, func() {
		cancel()
		_ = unix.Close(stop[1]) // the poll is told that the pipe's other end is gone
		<-done
		_ = unix.Close(stop[0])
	}
}
