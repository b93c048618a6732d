//go:build lab && linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// TestGateTime proves Z3 and Z4 on both Debian releases: windows end by the host's own clocks, with nobody
// reachable, no daemon, and whatever the time of day is set to.
func TestGateTime(t *testing.T) {
	for _, host := range gated(t) {
		t.Run(host.Suite, func(t *testing.T) {
			name := host.Name
			Try(t, name, "systemctl", "stop", "kibo-agent.service", "kibo-agent.socket")
			t.Run("lease", func(t *testing.T) { leaseEnds(t, name) })
			t.Run("clock back", func(t *testing.T) { clockBack(t, name) })
			t.Run("binding", func(t *testing.T) { boundToHost(t, name) })
			t.Run("boot", func(t *testing.T) { endsInBoot(t, name) })
			t.Run("reboot", func(t *testing.T) { rebootInside(t, name) })
			t.Run("quick", func(t *testing.T) { checkIsQuick(t, name) })
		})
	}
}

// leaseEnds: who renewed the lease is gone, sshd hangs, and the gate closes all the same, for everybody.
func leaseEnds(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "3s", "--lease", "--max", "1m", "--id", "walk")
	time.Sleep(2 * time.Second)
	answers(t, host, 0, "open until", "renew", "--id", "walk", "--for", "3s")
	if err := Lab(t).StopSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	answers(t, host, 0, "open until", "check") // the first term is over, the second is not
	time.Sleep(1100 * time.Millisecond)
	refused(t, host, "the window ended at")
	if err := Lab(t).ContinueSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	answers(t, host, 4, "the window ended at", "renew", "--id", "walk", "--for", "3s") // what has run out stays out
	Exec(t, host, "kibo-agent", "close")
}

// clockBack: the host has seen tomorrow, so its clock has been set back since; windows that begin now are as
// closed as those of before, until a person says that the clock is right.
func clockBack(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "allow", "--for", "10m")
	Exec(t, host, "sh", "-c", `echo $(($(date +%s) + 86400)) >/var/lib/kibo-agent/seen`)
	refused(t, host, "but this host has already seen")
	passes(t, host)
	if s := agentStatus(t, host); s.Code != gate.CodeClockBack {
		t.Errorf("%+v", s)
	}
	answers(t, host, 1, "has already seen", "allow", "--for", "10m")
	Exec(t, host, "rm", "/var/lib/kibo-agent/seen")
	Exec(t, host, "kibo-agent", "allow", "--for", "10m")
	answers(t, host, 0, "open until", "check")
	Exec(t, host, "kibo-agent", "close")
}

// endsInBoot: files as they look after the clock was set back within a boot, and after a reboot.
func endsInBoot(t *testing.T, host string) {
	place := `set -e; up=$(cut -d. -f1 /proc/uptime); echo "{\"notAfter\":$(($(date +%s) + 600)),\"bootId\":\"$1\",\"bootUntil\":$((up + $2))}" >` + gate.DefaultPath
	boot := Exec(t, host, "cat", "/proc/sys/kernel/random/boot_id")
	for _, tc := range []struct{ boot, left, says string }{
		{boot, "60", "open until"},
		{boot, "0", "whatever the clock says"},
		{"01234567-89ab-cdef-0123-456789abcdef", "0", "open until"}, // of another boot: the time of day decides
	} {
		Exec(t, host, "sh", "-c", place, "gate", tc.boot, tc.left)
		exit := 4
		if tc.says == "open until" {
			exit = 0
		}
		answers(t, host, exit, tc.says, "check")
	}
	Exec(t, host, "kibo-agent", "close")
}

// boundToHost: proves Z1: a window for another machine or another run is closed here.
func boundToHost(t *testing.T, host string) {
	own := Exec(t, host, "cat", "/etc/machine-id")
	Exec(t, host, "kibo-agent", "allow", "--for", "5m", "--machine-id", own, "--run", "r1")
	answers(t, host, 0, "open until", "check", "--operation", "stop", "--run", "r1")
	answers(t, host, 4, "the window is for run r1, not r2", "check", "--operation", "stop", "--run", "r2")
	refused(t, host, "the window is for run r1, not none")
	other := strings.Repeat("0", 32)
	Exec(t, host, "sed", "-i", "s/"+own+"/"+other+"/", gate.DefaultPath)
	refused(t, host, "the window is for machine "+other)
	answers(t, host, 1, "the window is for machine "+other, "allow", "--for", "5m", "--machine-id", other)
	Exec(t, host, "kibo-agent", "close")
}

// rebootInside: a reboot inside a window leaves it open until its end, and no longer.
func rebootInside(t *testing.T, host string) {
	boot := Exec(t, host, "cat", "/proc/sys/kernel/random/boot_id")
	Exec(t, host, "kibo-agent", "allow", "--for", "25s", "--operation", "reboot", "--operation", "stop")
	end := time.Now().Add(25 * time.Second)
	answers(t, host, 0, boot[:8], "status", "--output", "json") // it is bound to this boot
	if err := Lab(t).Reboot(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if now := Exec(t, host, "cat", "/proc/sys/kernel/random/boot_id"); now == boot {
		t.Fatal("it did not reboot")
	}
	answers(t, host, 0, "exit 0", "run", "--key", "after-reboot", "--operation", "stop", "--", "true")
	time.Sleep(time.Until(end.Add(time.Second)))
	answers(t, host, 4, "closed", "check") // its file may be gone: after a boot the daemon is there and sweeps
	Exec(t, host, "kibo-agent", "close")
}

// checkIsQuick: at most 10 ms for one question, the best of many, since the machine has other things to do.
func checkIsQuick(t *testing.T, host string) {
	const script = `n=0; while [ $n -lt 10 ]; do kibo-agent check >/dev/null; n=$((n+1)); done`
	best := time.Hour
	for range 20 {
		began := time.Now()
		Try(t, host, "sh", "-c", script)
		best = min(best, time.Since(began)/10)
	}
	t.Logf("check takes %s", best)
	if best > 10*time.Millisecond {
		t.Errorf("check takes %s", best)
	}
}
