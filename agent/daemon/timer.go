package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func native(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// alarm wakes at a moment of the host's clock, and when the clock is set: both can open or close a window. A
// monotonic timer would miss the second and be late after a suspend.
type alarm struct{ timer *os.File }

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot make a timer: %w", err)
	}
	return &alarm{timer: os.NewFile(uintptr(fd), "timerfd")}, nil
}

// never is so far away that only a clock being set can wake.
const never = 1 << 40

// set replaces the moment; the zero time is never.
func (a *alarm) set(at time.Time) error {
	spec := unix.ItimerSpec{Value: unix.Timespec{Sec: never}}
	if !at.IsZero() {
		spec.Value = unix.NsecToTimespec(at.UnixNano())
	}
	raw, err := a.timer.SyscallConn()
	if err != nil {
		return fmt.Errorf("cannot set the timer: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil)
	})
	// ECANCELED says that the clock was set meanwhile; the timer is set all the same, and run tells.
	if err := errors.Join(err, failed); err != nil && !errors.Is(err, unix.ECANCELED) {
		return fmt.Errorf("cannot set the timer: %w", err)
	}
	return nil
}

// run calls due at every moment that was set, and when the clock was set, until ctx ends.
func (a *alarm) run(ctx context.Context, due func()) error {
	stop := context.AfterFunc(ctx, func() { _ = a.timer.Close() })
	defer stop()
	buf := make([]byte, 8)
	for {
		_, err := a.timer.Read(buf)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, unix.ECANCELED) {
			return fmt.Errorf("cannot read the timer: %w", err)
		}
		due()
	}
}
