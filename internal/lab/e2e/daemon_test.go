//go:build lab && linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/daemon"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// watching is a `kibo-agent watch` on a host, as a controller runs it: over SSH.
type watching struct {
	t     *testing.T
	lines chan gate.Status
	kill  context.CancelFunc
}

func watch(t *testing.T, host string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, "ssh", "-F", Lab(t).SSHConfig(), host, "sudo -n kibo-agent watch --output jsonl")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{t: t, lines: make(chan gate.Status, 100), kill: cancel}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var s gate.Status
			err := json.Unmarshal(lines.Bytes(), &s)
			if err != nil {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			if err == nil {
				w.lines <- s
			}
		}
		close(w.lines)
		_ = command.Wait()
	}()
	t.Cleanup(cancel)
	return w
}

// until waits for a line that is as wanted and returns how long after from it came.
func (w *watching) until(what string, from time.Time, wanted func(gate.Status) bool) time.Duration {
	w.t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case s, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("the watch ended; want %s", what)
			}
			if wanted(s) {
				return time.Since(from)
			}
		case <-limit:
			w.t.Fatalf("no line says %s", what)
		}
	}
}

func heldBy(s gate.Status) bool { return len(s.Held()) > 0 }
func freed(s gate.Status) bool  { return len(s.Held()) == 0 }

// TestDaemon: what kibo-agent.service does on both Debian releases, and that nothing but it depends on it.
func TestDaemon(t *testing.T) {
	var idle []string
	for _, host := range gated(t) {
		name := host.Name
		t.Run(host.Suite, func(t *testing.T) {
			t.Run("unit", func(t *testing.T) { daemonUnit(t, name) })
			t.Run("watch", func(t *testing.T) { watchLocks(t, name) })
			t.Run("expiry", func(t *testing.T) { daemonSweeps(t, name) })
			t.Run("metrics", func(t *testing.T) { daemonMeasures(t, name) })
			t.Run("stopped", func(t *testing.T) { daemonStopped(t, name) })
			t.Run("past the gate", func(t *testing.T) { daemonNotices(t, name) })
		})
		idle = append(idle, name)
	}
	t.Run("idle", func(t *testing.T) { daemonIdle(t, idle) })
}

func daemonUnit(t *testing.T, host string) {
	if got := Exec(t, host, "systemctl", "is-active", "kibo-agent.service"); got != "active" {
		t.Fatalf("the daemon is %s", got)
	}
	if got := Try(t, host, "systemctl", "is-enabled", "kibo-agent-fleetlock.service"); strings.TrimSpace(got.Stdout) != "disabled" {
		t.Errorf("FleetLock is %s", got.Stdout)
	}
	if got := Exec(t, host, "systemctl", "show", "-P", "StatusText", "kibo-agent.service"); !strings.Contains(got, "closed: ") {
		t.Errorf("status text %q", got)
	}
	for _, unit := range []string{"kibo-agent.service", "kibo-agent-fleetlock.service"} {
		text := Exec(t, host, "systemd-analyze", "security", "--no-pager", unit)
		_, last, _ := strings.Cut(text, "Overall exposure level for "+unit+": ")
		exposure, err := strconv.ParseFloat(strings.Fields(last + " ?")[0], 64)
		if err != nil || exposure > 3.0 {
			t.Errorf("%s: exposure %q %v, want at most 3.0", unit, last, err)
		}
		t.Logf("%s: exposure %.1f", unit, exposure)
	}
	if got := Exec(t, host, "stat", "-c", "%a %U", daemon.SocketPath, "/run/kibo-agent"); got != "600 root\n700 root" {
		t.Errorf("the socket: %s", got)
	}
	ask := `import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.makefile().read())`
	var bySocket, byCommand gate.Status
	for text, into := range map[string]*gate.Status{
		Exec(t, host, "python3", "-c", ask, daemon.SocketPath):          &bySocket,
		Exec(t, host, "kibo-agent", "status", "--output", "json") + " ": &byCommand,
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if len(bySocket.Layers) != 2 || !reflect.DeepEqual(bySocket, byCommand) {
		t.Errorf("by the socket %+v, by the command %+v", bySocket, byCommand)
	}
}

// watchLocks proves Z7: a lock of logind that comes or goes is told in less than a second, a delay lock holds
// nobody up.
func watchLocks(t *testing.T, host string) {
	w := watch(t, host)
	w.until("the answer now", time.Now(), freed)
	for n := range 3 {
		from := time.Now()
		Exec(t, host, "systemd-run", "-q", "--unit=watch-block", "systemd-inhibit", "--what=shutdown", "--mode=block", "--who=backup", "--why=nightly", "sleep", "600")
		came := w.until("held", from, heldBy)
		from = time.Now()
		Exec(t, host, "systemctl", "stop", "watch-block.service")
		went := w.until("free", from, freed)
		t.Logf("try %d: told %s after it was asked for, %s after its release", n, came, went)
		if came > time.Second || went > time.Second {
			t.Errorf("told %s after the lock and %s after its release, want at most 1s", came, went)
		}
	}
	Exec(t, host, "systemd-run", "-q", "--unit=watch-delay", "systemd-inhibit", "--what=shutdown", "--mode=delay", "--who=backup", "--why=nightly", "sleep", "600")
	w.until("a delay lock", time.Now(), func(s gate.Status) bool {
		if heldBy(s) {
			t.Errorf("a delay lock holds: %+v", s)
		}
		return len(s.Inhibitors) > 0
	})
	Exec(t, host, "systemctl", "stop", "watch-delay.service")
	w.until("no delay lock", time.Now(), func(s gate.Status) bool { return len(s.Inhibitors) == 0 })
	from := time.Now()
	Exec(t, host, "kibo-agent", "hold", "--why", "looking at it")
	came := w.until("a hold", from, heldBy)
	from = time.Now()
	Exec(t, host, "kibo-agent", "release")
	if went := w.until("no hold", from, freed); came > time.Second || went > time.Second {
		t.Errorf("a hold: told after %s, its release after %s", came, went)
	}
	// logind that is started anew is listened to again.
	Exec(t, host, "systemctl", "restart", "systemd-logind.service")
	Exec(t, host, "systemd-run", "-q", "--unit=watch-block", "systemd-inhibit", "--what=shutdown", "--mode=block", "--who=backup", "--why=again", "sleep", "600")
	w.until("held, by the new logind", time.Now(), heldBy)
	Exec(t, host, "systemctl", "stop", "watch-block.service")
	w.until("free again", time.Now(), freed)
	w.kill()
	for range 50 {
		if Try(t, host, "pgrep", "-f", "^kibo-agent watch").Exit == 1 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the watch outlives its connection: %s", Exec(t, host, "pgrep", "-af", "kibo-agent"))
}

// daemonSweeps proves Z4: a window that ended is told, removed and remembered in the journal, by nobody's order.
func daemonSweeps(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "2s", "--id", "short")
	for range 60 {
		if Try(t, host, "test", "-e", gate.DefaultPath).Exit == 1 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	Exec(t, host, "test", "!", "-e", gate.DefaultPath)
	for range 50 {
		if got := Exec(t, host, "journalctl", "-q", "-o", "cat", "KIBO_WINDOW=short", "KIBO_CODE=expired"); strings.Contains(got, "the window ended at") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the journal says nothing of the end")
}

// daemonMeasures: into a directory that is another user's, as Debian's node_exporter has it.
func daemonMeasures(t *testing.T, host string) {
	Exec(t, host, "install", "-d", "-o", "ops", "-m", "0755", daemon.TextfileDir)
	Exec(t, host, "systemctl", "restart", "kibo-agent.service")
	Exec(t, host, "kibo-agent", "allow", "--for", "5m")
	path := daemon.TextfileDir + "/kibo-agent.prom"
	for range 50 {
		if strings.Contains(Try(t, host, "cat", path).Stdout, "\nkibo_agent_gate_open 1\n") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := Exec(t, host, "cat", path); !strings.Contains(got, "\nkibo_agent_gate_open 1\n") {
		t.Errorf("metrics: %s", got)
	}
	if got := Exec(t, host, "stat", "-c", "%a %U", path); got != "644 root" {
		t.Errorf("metrics: %s", got)
	}
	Exec(t, host, "kibo-agent", "close")
}

// daemonStopped proves Z5: with the daemon and without it, every command gives the same answer.
func daemonStopped(t *testing.T, host string) {
	answers := func() string {
		var all strings.Builder
		for _, line := range []string{"check --output json", "check --operation stop", "status --output json"} {
			got := Try(t, host, append([]string{"kibo-agent"}, strings.Fields(line)...)...)
			_, _ = fmt.Fprintf(&all, "%s: %d %s%s", line, got.Exit, got.Stdout, got.Stderr)
		}
		return all.String()
	}
	scenes := []struct{ name, do, undo string }{
		{"closed", "true", "true"},
		{"open", "kibo-agent allow --for 10m", "true"},
		{"held", "kibo-agent hold --why x --id daemon-test", "kibo-agent release --id daemon-test"},
	}
	for _, scene := range scenes {
		Exec(t, host, strings.Fields(scene.do)...)
		with := answers()
		Exec(t, host, "systemctl", "stop", "kibo-agent.service")
		if without := answers(); without != with {
			t.Errorf("%s: with the daemon\n%s\nwithout\n%s", scene.name, with, without)
		}
		if scene.name == "open" {
			if job := runJob(t, host, "--key", "no-daemon", "--operation", "stop", "--", "true"); job.State != gate.JobFinished {
				t.Errorf("%+v", job)
			}
			w := watch(t, host)
			w.until("the answer, without the daemon", time.Now(), func(s gate.Status) bool { return s.Open })
			w.kill()
		}
		Exec(t, host, strings.Fields(scene.undo)...)
		Exec(t, host, "systemctl", "start", "kibo-agent.service")
	}
	Exec(t, host, "kibo-agent", "close")
}
