package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/fleetlock"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// proves Z5: watch answers by itself, without a daemon.
func TestWatchUntil(t *testing.T) {
	c := newConsole(t)
	if got := c.run(t, "watch --until free --output jsonl"); got != 0 {
		t.Errorf("exit %d, %s", got, &c.err)
	}
	var s gate.Status
	if err := json.Unmarshal(c.out.Bytes(), &s); err != nil || s.Code != gate.CodeMissing {
		t.Errorf("%s %v", &c.out, err)
	}
	if got := c.run(t, "watch --until open --timeout 50ms"); got != ExitClosed || !strings.Contains(c.out.String(), "closed: there is no ") {
		t.Errorf("exit %d, %s %s", got, &c.out, &c.err)
	}
	c.run(t, "allow --for 30m")
	if got := c.run(t, "watch --until open"); got != 0 || !strings.Contains(c.out.String(), "open until") {
		t.Errorf("exit %d, %s %s", got, &c.out, &c.err)
	}
	if got := c.run(t, "watch --timeout 50ms"); got != 0 {
		t.Errorf("exit %d, %s", got, &c.err)
	}
	c.host.Jobs.Inhibitors = func(context.Context) ([]gate.Inhibitor, error) {
		return []gate.Inhibitor{{What: "shutdown", Mode: "block", Who: "backup"}}, nil
	}
	if got := c.run(t, "watch --until free --timeout 50ms"); got != ExitClosed || !strings.Contains(c.out.String(), "held by 1: backup") {
		t.Errorf("exit %d, %s %s", got, &c.out, &c.err)
	}
}

func TestDaemonUsage(t *testing.T) {
	c := newConsole(t)
	conf := filepath.Join(t.TempDir(), "fleetlock.conf")
	if err := os.WriteFile(conf, []byte("listen = 0.0.0.0:1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		exit int
		says string
	}{
		"watch --until dawn":               {ExitUsage, "free or open"},
		"watch --output xml":               {ExitUsage, "text or json"},
		"status --output jsonl":            {ExitUsage, "text or json"},
		"daemon now":                       {ExitUsage, "one word too many"},
		"fleetlock --listen 0.0.0.0:1":     {ExitUsage, "loopback"},
		"fleetlock --listen localhost":     {ExitUsage, "loopback"},
		"fleetlock --config /nowhere/conf": {ExitError, "cannot read the configuration"},
		"fleetlock --config " + conf:       {ExitError, "loopback"},
	} {
		if got := c.run(t, line); got != want.exit || !strings.Contains(c.err.String(), want.says) {
			t.Errorf("%q: exit %d, stderr %s", line, got, &c.err)
		}
	}
}

// The commands that serve end when they are told to.
func TestServe(t *testing.T) {
	for _, line := range []string{"fleetlock --listen 127.0.0.1:0", "daemon --socket " + filepath.Join(t.TempDir(), "s") + " --textfile-dir /nowhere"} {
		c := newConsole(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if got := Main(ctx, c.host, strings.Fields(line)); got != 0 {
			t.Errorf("%s: exit %d, %s", line, got, &c.err)
		}
		cancel()
	}
}

func TestRebootGate(t *testing.T) {
	c := newConsole(t)
	var told []string
	g := rebootGate{reboots: agent.Reboots{Jobs: c.host.Jobs}, group: "kibo", told: func(format string, _ ...any) { told = append(told, format) }}
	me := fleetlock.Identity{ID: "a", Group: "kibo"}
	if err := g.Permit(t.Context(), me); err == nil {
		t.Error("permitted without a window")
	}
	c.run(t, "allow --for 30m --operation reboot")
	if err := g.Permit(t.Context(), me); err != nil {
		t.Error(err)
	}
	if err := g.Settled(t.Context(), me); err != nil || len(told) != 2 {
		t.Errorf("%v %q", err, told)
	}
	me.Group = "other"
	for _, ask := range []func(context.Context, fleetlock.Identity) error{g.Permit, g.Settled} {
		if err := ask(t.Context(), me); err == nil || !strings.Contains(err.Error(), "this host is in group kibo") {
			t.Errorf("%v", err)
		}
	}
}
