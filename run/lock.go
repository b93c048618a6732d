package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// ErrHeld is the error of a fleet that another run holds.
var ErrHeld = errors.New("another run holds the fleet")

// lockScript writes the holder beside the lock and keeps it for as long as standard input stays open.
const lockScript = `echo "$1" > "$2"; echo held; cat > /dev/null`

// LockFleet takes the fleet's lock on the ctrl host, for as long as the connection lives. holder is a name for people.
func LockFleet(ctx context.Context, fleet Fleet, host, dir, holder string) (*remote.Held, error) {
	conn, err := fleet.Conn(ctx, host)
	if err != nil {
		return nil, err
	}
	if res, err := conn.Run(ctx, root("mkdir", "-p", "-m", "0755", dir)); err != nil || res.Exit != 0 {
		return nil, fmt.Errorf("cannot make %s on %s (exit status %d): %w", dir, host, res.Exit, err)
	}
	file := filepath.Join(dir, "lock")
	c := command.Command{
		Argv: []string{"flock", "--nonblock", "--conflict-exit-code", "7", file, "sh", "-c", lockScript, "kibo-lock", holder, file + ".holder"},
		As:   command.Root, Effect: command.Changes,
	}
	held, err := conn.Hold(ctx, c)
	if err == nil {
		return held, nil
	}
	var e *remote.Error
	if errors.As(err, &e) && e.Kind != remote.Lost {
		return nil, err
	}
	res, readErr := conn.Run(ctx, command.Command{Argv: []string{"cat", file + ".holder"}, Effect: command.Reads})
	if readErr != nil || res.Exit != 0 {
		return nil, fmt.Errorf("cannot lock the fleet on %s: %w", host, err)
	}
	return nil, fmt.Errorf("%w: %.200q on %s", ErrHeld, res.Stdout, host)
}
