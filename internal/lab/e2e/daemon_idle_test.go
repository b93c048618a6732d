//go:build lab && linux

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// daemonNotices proves Z8: a change that went past both hooks is in the journal, without anybody asking.
func daemonNotices(t *testing.T, host string) {
	Exec(t, host, "kibo-agent", "status") // what is there now is the base
	Exec(t, host, "mv", "/etc/dpkg/dpkg.cfg.d/kibo-agent", "/root/")
	Exec(t, host, "dpkg", "-i", nodeDebAt)
	Exec(t, host, "mv", "/root/kibo-agent", "/etc/dpkg/dpkg.cfg.d/")
	for range 50 {
		if got := Exec(t, host, "journalctl", "-q", "-o", "cat", "KIBO_UNGATED=kibotos-node"); got != "" {
			if !strings.Contains(got, "package kibotos-node went from 0.1.2 to 0.1.4 past the gate") {
				t.Error(got)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the journal says nothing: %s", Exec(t, host, "kibo-agent", "status"))
}

// daemonIdle: while nothing changes, the daemon sleeps. What is left is the Go runtime's own monitor, which looks
// once a minute whether anything runs: one thread, two switches.
func daemonIdle(t *testing.T, hosts []string) {
	const script = `pid=$(systemctl show -P MainPID kibo-agent.service)
grep VmRSS: /proc/$pid/status
cd /proc/$pid/task; for t in *; do echo "$t $(awk '/ctxt_switches/ {n += $2} END {print n}' $t/status)"; done`
	measure := func(host string) (rss int, switches map[string]int) {
		lines := strings.Split(Exec(t, host, "sh", "-c", script), "\n")
		rss, _ = strconv.Atoi(strings.Fields(lines[0])[1])
		switches = map[string]int{}
		for _, line := range lines[1:] {
			thread, count, _ := strings.Cut(line, " ")
			switches[thread], _ = strconv.Atoi(count)
		}
		return rss, switches
	}
	time.Sleep(5 * time.Second) // the start has settled
	before := map[string]map[string]int{}
	for _, host := range hosts {
		_, before[host] = measure(host)
	}
	time.Sleep(60 * time.Second)
	for _, host := range hosts {
		rss, after := measure(host)
		total, threads := 0, 0
		for thread, n := range after {
			if more := n - before[host][thread]; more > 0 {
				total, threads = total+more, threads+1
			}
		}
		t.Logf("%s: %d KiB resident; %d switches of %d of %d threads in 60s", host, rss, total, threads, len(after))
		if rss == 0 || rss > 15*1024 {
			t.Errorf("%s: %d KiB resident, want at most 15 MiB", host, rss)
		}
		if total > 4 || threads > 1 {
			t.Errorf("%s: %d switches of %d threads in a minute in which nothing changed", host, total, threads)
		}
	}
}
