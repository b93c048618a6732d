package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// ErrHeld is the error of a fleet that another run holds.
var ErrHeld = errors.New("another run holds the fleet")

// lockScript writes the holder beside the lock and keeps it for as long as standard input stays open.
const lockScript = `echo "$1" > "$2"; echo held; cat > /dev/null`

// lockConflict is flock's exit status when somebody else has the lock.
const lockConflict = 7

// FleetLock is the fleet's lock on the ctrl host. It lives as long as the connection, and is taken again when that is lost.
type FleetLock struct {
	fleet             Fleet
	host, dir, holder string
	pause             func(context.Context, time.Duration)

	gone chan struct{} // closed when it could not be taken again
	end  context.CancelFunc
	done sync.WaitGroup
}

// LockFleet takes the lock. holder is a name for people. The error wraps ErrHeld when another run has it, and names that.
func LockFleet(ctx context.Context, fleet Fleet, host, dir, holder string, pause func(context.Context, time.Duration)) (*FleetLock, error) {
	l := &FleetLock{fleet: fleet, host: host, dir: dir, holder: holder, pause: pause, gone: make(chan struct{})}
	held, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	ctx, l.end = context.WithCancel(context.WithoutCancel(ctx))
	l.done.Go(func() { l.keep(ctx, held) })
	return l, nil
}

// Gone is closed when the lock was lost and another run took it, or the ctrl host cannot be asked any more.
func (l *FleetLock) Gone() <-chan struct{} { return l.gone }

// Release gives the lock back.
func (l *FleetLock) Release() {
	l.end()
	l.done.Wait()
}

// lockTries is how often a lost lock is asked for again, with a second between.
const lockTries = 60

// keep takes the lock again whenever the connection that holds it is lost.
func (l *FleetLock) keep(ctx context.Context, held *remote.Held) {
	for {
		select {
		case <-ctx.Done():
			_ = held.Release() // it ends with the connection anyway
			return
		case <-held.Lost:
		}
		var err error
		for range lockTries {
			// The host may still keep the lock for the connection that was lost: that is no other run.
			if held, err = l.take(ctx); err == nil || ctx.Err() != nil || errors.Is(err, ErrHeld) && !strings.Contains(err.Error(), l.holder) {
				break
			}
			l.pause(ctx, time.Second)
		}
		if err != nil {
			if ctx.Err() == nil {
				close(l.gone)
			}
			return
		}
	}
}

func (l *FleetLock) take(ctx context.Context) (*remote.Held, error) {
	conn, err := l.fleet.Conn(ctx, l.host)
	if err != nil {
		return nil, err
	}
	res, err := conn.Run(ctx, root("mkdir", "-p", "-m", "0755", l.dir))
	if err != nil {
		return nil, err
	}
	if res.Exit != 0 {
		return nil, fmt.Errorf("host %s: cannot make %s: exit status %d: %.200q", l.host, l.dir, res.Exit, res.Stderr)
	}
	file := filepath.Join(l.dir, "lock")
	held, err := conn.Hold(ctx, command.Command{
		Argv: []string{
			"flock", "--nonblock", "--conflict-exit-code", fmt.Sprint(lockConflict), file,
			"sh", "-c", lockScript, "kibo-lock", l.holder, file + ".holder",
		},
		As: command.Root, Effect: command.Changes,
	})
	var ended *remote.ExitError
	switch {
	case err == nil:
		return held, nil
	case !errors.As(err, &ended):
		return nil, err
	case ended.Result.Exit != lockConflict:
		return nil, fmt.Errorf("host %s: cannot lock the fleet: %w", l.host, err)
	}
	return nil, fmt.Errorf("%w: %s, says host %s", ErrHeld, l.who(ctx, conn, file), l.host)
}

// Holder says who holds the fleet's lock at this moment, or "" if nobody does.
func Holder(ctx context.Context, fleet Fleet, host, dir string) (string, error) {
	conn, err := fleet.Conn(ctx, host)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "lock")
	res, err := conn.Run(ctx, command.Command{
		Argv: []string{"sh", "-c", holderScript, "kibo-holder", file, fmt.Sprint(lockConflict)}, As: command.Root, Effect: command.Reads,
	})
	if err != nil || res.Exit != lockConflict {
		return "", err
	}
	return (&FleetLock{host: host}).who(ctx, conn, file), nil
}

// holderScript takes the lock and gives it back at once; where there is no lock file, nobody ever took it.
const holderScript = `[ -e "$1" ] || exit 0; exec flock --nonblock --conflict-exit-code "$2" "$1" true`

// who reads the holder's name; the lock is held whether it can be read or not.
func (l *FleetLock) who(ctx context.Context, conn remote.Conn, file string) string {
	res, err := conn.Run(ctx, command.Command{Argv: []string{"cat", file + ".holder"}, Effect: command.Reads})
	if err != nil || res.Exit != 0 {
		return "somebody whose name cannot be read"
	}
	return fmt.Sprintf("%.200q", strings.TrimSpace(string(res.Stdout)))
}

// Current reads which run the ctrl host remembers as not ended; "" is none.
func Current(ctx context.Context, fleet Fleet, host, dir string) (string, error) {
	conn, err := fleet.Conn(ctx, host)
	if err != nil {
		return "", err
	}
	file := currentFile(dir)
	res, err := conn.Run(ctx, command.Command{
		Argv: []string{"sh", "-c", `if [ -e "$1" ]; then cat "$1"; fi`, "kibo-current", file}, As: command.Root, Effect: command.Reads,
	})
	if err != nil {
		return "", err
	}
	if res.Exit != 0 {
		return "", fmt.Errorf("host %s: cannot read %s: exit status %d: %.200q", host, file, res.Exit, res.Stderr)
	}
	return strings.TrimSpace(string(res.Stdout)), nil
}
