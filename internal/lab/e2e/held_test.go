//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// tailed collects what a program prints while it runs.
type tailed struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *tailed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *tailed) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// inhibit holds a host by a lock of logind until the returned function is called.
func inhibit(t *testing.T, host, mode string) (release func()) {
	t.Helper()
	unit := "lab-inhibit-" + mode
	Exec(t, host, "systemd-run", "--unit="+unit, "--collect", "systemd-inhibit", "--what=shutdown", "--who=night-shift", "--why=backup runs",
		"--mode="+mode, "sleep", "3600")
	within(t, 10*time.Second, "the lock is there", func() bool {
		return strings.Contains(Exec(t, host, "systemd-inhibit", "--list", "--no-pager"), "night-shift")
	})
	return func() { Exec(t, host, "systemctl", "stop", unit) }
}

// TestHeldHost: while a process holds a block lock on a node, the walk goes around it, and comes back when it is released; a
// delay lock changes nothing.
// proves Z7
func TestHeldHost(t *testing.T) {
	Fresh(t)
	before := allVMMs(t)
	held, delayed, last := nodeHosts(t)[0].Name, nodeHosts(t)[1].Name, nodeHosts(t)[2].Name
	release := inhibit(t, held, "block")
	inhibit(t, delayed, "delay")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out tailed
	operator := exec.CommandContext(ctx, Program(t, "kibo-rollout"), append([]string{"apply", "--yes", "-i", Lab(t).Inventory()}, walkFlags(t, "0.1.4")...)...)
	operator.Env = append(os.Environ(), "XDG_STATE_HOME="+StateDir(), "NO_COLOR=1")
	operator.Stdout, operator.Stderr = &out, &out
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	version := func(host, part string) string {
		return Try(t, host, "dpkg-query", "-W", "-f", "${Version}", "kibotos-"+part).Stdout
	}
	within(t, 3*time.Minute, "all others are upgraded", func() bool {
		return version(delayed, "node") == "0.1.4" && version(last, "node") == "0.1.4" && version("gw-1", "gw") == "0.1.4"
	})
	if got := version(held, "node"); got != "0.1.2" {
		t.Errorf("the held host was touched: %s", got)
	}
	if list := Exec(t, "ctrl-1", "kibo", "node", "list"); strings.Contains(list, "DRAIN") {
		t.Errorf("the held host was drained:\n%s", list)
	}
	time.Sleep(2 * time.Second) // it waits now
	released := time.Now()
	release()
	within(t, time.Minute, "the walk comes back", func() bool { return strings.Contains(out.String(), held+"  drain the node") })
	t.Logf("came back %s after the release", time.Since(released).Round(10*time.Millisecond))
	if err := operator.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, text := range []string{"night-shift", held + " is held, and left for later", "every VMM is the same process: 6 of 6"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, out.String())
		}
	}
	upgraded(t, "0.1.4")
	sameVMMs(t, before)
}
