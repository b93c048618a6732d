package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// RunProgram returns a function for Options.Run that runs inventory programs on this machine until ctx is done.
// The error carries what the program wrote to its standard error.
func RunProgram(ctx context.Context) func(path string, args ...string) ([]byte, error) {
	return func(path string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.WaitDelay = time.Second // its own children may hold its output open
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			if said := strings.TrimSpace(errOut.String()); said != "" {
				return nil, fmt.Errorf("%w: %s", err, said)
			}
			if ctx.Err() != nil {
				return nil, errors.Join(ctx.Err(), err)
			}
			return nil, err
		}
		return out.Bytes(), nil
	}
}
