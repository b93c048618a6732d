package host

import (
	"context"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// agentWatch is `kibo-agent watch --until free`: it ends when nobody holds the machine, or when its time is up. Where the real one is
// told by the kernel and logind, this one looks again.
func (m *Machine) agentWatch(ctx context.Context, p *shell.Proc, o options) int {
	if o.get("--until") != "free" {
		m.noteUnknown("kibo-agent watch")
		return p.Fail(agentUsage, "a simulated kibo-agent watches --until free only")
	}
	limit, err := time.ParseDuration(orDefault(o.get("--timeout"), "1m"))
	if err != nil {
		return p.Fail(agentUsage, "%s", err)
	}
	for end := m.w.Now().Add(limit); ; m.w.Sleep(ctx, 20*time.Millisecond) {
		s := gate.Status{Holds: m.holds()}
		if len(s.Held()) == 0 {
			printJSON(p, s)
			return 0
		}
		if ctx.Err() != nil || !m.w.Now().Before(end) {
			return agentDenied
		}
	}
}
