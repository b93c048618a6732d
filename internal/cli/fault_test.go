package cli

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

// saying matches a command that holds all the words.
func saying(words ...string) func(argv []string) bool {
	return func(argv []string) bool {
		line := strings.Join(argv, " ")
		for _, w := range words {
			if !strings.Contains(line, w) {
				return false
			}
		}
		return true
	}
}

// TestConnectionLost cuts the connection once, before, during and after each kind of command that the walk sends. The walk either
// goes on by itself or stops resumably; then `apply` ends it. VMs are untouched, nothing is left, nothing is done twice.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	commands := []struct {
		host  string
		words []string
	}{
		{"node-1", []string{"kibo-unit"}},                                      // facts
		{"node-1", []string{"kibo-agent", "allow"}},                            // the window
		{"node-1", []string{"kibo-agent", "run", "systemctl stop"}},            // the stop
		{"node-1", []string{"check-upgrade", "--runtime-dir"}},                 // previews and the offline check
		{"node-1", []string{"kibo-agent", "run", "apt-get"}},                   // the install
		{"node-1", []string{"kibo-agent", "run", "systemctl start"}},           // the start
		{"node-1", []string{"kibo-agent", "close"}},                            // the close
		{"node-1", []string{"dpkg-deb", "-x"}},                                 // staging
		{"node-1", []string{"sha256sum"}},                                      // uploads
		{"node-1", []string{"rm", "-rf", "--", "/var/lib/kibo-rollout/stage"}}, // cleaning up
		{"ctrl-1", []string{"kibo-agent", "run", "drain"}},                     // the drain
		{"ctrl-1", []string{"kibo-agent", "run", "cancel-drain"}},              // and its end
		{"ctrl-1", []string{"kibo-agent", "run", "apt-get"}},                   // ctrl's install
		{"ctrl-1", []string{"kibo", "node", "list"}},                           // the node list
		{"ctrl-1", []string{"dd", "journal.jsonl"}},                            // the journal's copy
		{"ctrl-1", []string{"flock"}},                                          // the fleet lock
	}
	for _, c := range commands {
		for _, when := range []string{"before", "during", "after"} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.host, strings.Join(c.words, "-"), when), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 1})
				before := b.vmms()
				once := host.Once(saying(c.words...))
				b.fault(c.host, func(f *host.Faults) {
					switch when {
					case "before":
						f.DropBefore = once
					case "during":
						f.DropDuring = once
					case "after":
						f.DropAfter = once
					}
				})
				for try := 0; ; try++ {
					s := b.apply()
					if s.code == exitDone {
						break
					}
					if try == 3 || s.code != exitStopped && s.code != exitUnreachable && s.code != exitError {
						t.Fatalf("exit code %d\n%s", s.code, s)
					}
				}
				b.onTarget("0.1.4")
				b.sameVMMs(before)
				for _, m := range b.fleet.Machines() {
					for _, op := range []string{"install", "stop", "start"} {
						if got := b.jobs(m, op); got != 1 {
							t.Errorf("%s: %d jobs %s", m.Name(), got, op)
						}
					}
				}
			})
		}
	}
}

// TestStop asks the walk to stop, as Ctrl-C does, while one of its commands runs: the command ends, windows are closed, the run can
// be gone on with.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{"kibo-agent", "run", "drain"}, {"kibo-agent", "run", "systemctl stop"}, {"kibo-agent", "run", "apt-get"}, {"kibo-agent", "run", "systemctl start"},
	} {
		t.Run(strings.Join(words, "-"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, simfleet.Spec{Ctrl: 1, Nodes: 2})
			before := b.vmms()
			var once sync.Once
			for _, name := range []string{"node-1", "ctrl-1"} {
				b.fault(name, func(f *host.Faults) {
					f.DropBefore = func(argv []string) bool {
						if saying(words...)(argv) && saying("kibotos-node")(argv) != saying("drain")(argv) {
							once.Do(func() { close(b.stop) })
						}
						return false
					}
				})
			}
			b.want(b.apply(), exitInterrupted, "kibo-rollout resume")
			b.sameVMMs(before)
			for _, m := range b.fleet.Machines() {
				if v, _ := m.Gate(); v.Open {
					t.Errorf("%s: a window is open", m.Name())
				}
			}
			b.stop = make(chan struct{})
			b.want(b.apply(), exitDone, "going on with run")
			b.onTarget("0.1.4")
			b.sameVMMs(before)
		})
	}
}
