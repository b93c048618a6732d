package cli

import (
	"context"
	"fmt"

	"github.com/kibotos/kibo-rollout/agent"
)

func aptHook(_ context.Context, h Host, args []string) (int, error) {
	if err := newFlags("apt-hook").parse(args, false); err != nil {
		return 0, err
	}
	c, err := agent.ReadAptHook(h.Stdin, h.Dpkg.Control)
	if err != nil {
		return 0, err
	}
	return permit(h, c), nil
}

func dpkgHook(_ context.Context, h Host, args []string) (int, error) {
	if err := newFlags("dpkg-hook").parse(args, false); err != nil {
		return 0, err
	}
	c, err := h.Dpkg.Change(h.Getenv("DPKG_HOOK_ACTION"))
	if err != nil {
		return 0, err
	}
	return permit(h, c), nil
}

// permit asks the guard and says on standard error why not, and what to do about it.
func permit(h Host, c agent.Change) int {
	err := h.Guard.Permit(c)
	if err == nil {
		return ExitOK
	}
	_, _ = fmt.Fprintf(h.Stderr, `kibo-agent: refused: %s
  because: %v
  nothing was changed; other packages are not concerned: leave kibotos packages out (apt-mark hold) to go on with them
  next: kibo-agent status
  next: kibo-agent allow --for 30m --reason 'why'
`, c.Words(), err)
	return ExitError
}
