//go:build lab && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/fleetlock"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// unusedAddress is a loopback address with a port that nobody listens on. The hosts share this machine's network.
func unusedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// kindOf is the kind of a refusal, "" of none.
func kindOf(t *testing.T, err error) string {
	t.Helper()
	var e *fleetlock.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e == nil {
		return ""
	}
	return e.Kind
}

// TestFleetLockServer proves Z9 and Z7: an unmodified client of FleetLock on a host gets the gate's answer.
func TestFleetLockServer(t *testing.T) {
	for _, host := range gated(t) {
		t.Run(host.Suite, func(t *testing.T) {
			name, address := host.Name, unusedAddress(t)
			Exec(t, name, "systemctl", "start", "kibo-agent-fleetlock.service")
			if got := Try(t, name, "systemctl", "is-active", "kibo-agent-fleetlock.service"); strings.TrimSpace(got.Stdout) != "inactive" {
				t.Errorf("without its configuration it is %s", got.Stdout)
			}
			if got := Try(t, name, "kibo-agent", "fleetlock", "--listen", "0.0.0.0:3333"); got.Exit != 2 || !strings.Contains(got.Stderr, "loopback") {
				t.Errorf("not on loopback: %+v", got)
			}
			Exec(t, name, "sh", "-c", `echo "listen = $1" >/etc/kibo-agent/fleetlock.conf`, "conf", address)
			Exec(t, name, "systemctl", "start", "kibo-agent-fleetlock.service")
			c := fleetlock.Client{URL: "http://" + address, ID: "zincati-1"}
			other := c
			other.ID = "zincati-2"
			steps := []struct {
				what, do, want string
				ask            func(context.Context) error
			}{
				{"no window", "true", "gate_missing", c.TryLock},
				{"for another operation", "kibo-agent allow --for 5m --operation install", "gate_other_operation", c.TryLock},
				{"inhibited", "systemd-run -q --unit=fleetlock-block -- systemd-inhibit --what=shutdown --mode=block --who=backup sleep 600", "", nil},
				{"once, inhibited", "kibo-agent allow --for 5m --operation reboot --once", "gate_inhibited", c.TryLock},
				{"once", "systemctl stop fleetlock-block.service", "", c.TryLock},
				{"it is used up", "test ! -e " + gate.DefaultPath, "", c.TryLock},
				{"another client", "true", "gate_missing", other.TryLock},
				{"held", "kibo-agent hold --why x --id fleetlock", "gate_held", c.TryLock},
				{"settled", "kibo-agent release --id fleetlock", "", c.Unlock},
				{"settled again", "true", "", c.Unlock},
				{"after it", "true", "gate_missing", c.TryLock},
				{"any number", "kibo-agent allow --for 5m", "", c.TryLock},
				{"any client", "true", "", other.TryLock},
				{"closed again", "kibo-agent close", "gate_missing", c.TryLock},
			}
			for _, step := range steps {
				Exec(t, name, strings.Fields(step.do)...)
				if step.ask == nil {
					time.Sleep(time.Second) // the lock is taken a moment after the unit has started
					continue
				}
				if got := kindOf(t, step.ask(t.Context())); got != step.want {
					t.Errorf("%s: %q, want %q", step.what, got, step.want)
				}
			}
			if got := Exec(t, name, "journalctl", "-q", "-o", "cat", "-u", "kibo-agent-fleetlock.service"); !strings.Contains(got, "reboot of zincati-1 in group default permitted") {
				t.Errorf("journal: %s", got)
			}
		})
	}
}

// TestFleetLockClient: one slot in a real etcd. Two clients: one waits. A holder that is killed is seen with its
// name, and its slot can be given back for it.
func TestFleetLockClient(t *testing.T) {
	service := &slots{etcd: startEtcd(t), groups: map[string]uint64{"kibo": 1}}
	server := httptest.NewServer(service)
	defer server.Close()
	holders := func() string {
		t.Helper()
		s, err := fleetlock.ReadSemaphore(t.Context(), http.DefaultClient, service.etcd, "kibo")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(s.Slots, s.Holders)
	}
	a := fleetlock.Client{URL: server.URL + "/", Group: "kibo", ID: "run-a/node-1"}
	b := a
	b.ID = "run-b/node-1"
	stranger := a
	stranger.Group = "nobody"
	if got := kindOf(t, stranger.Lock(t.Context())); got != "unknown_group" {
		t.Errorf("%q", got)
	}
	for range 2 { // recursive
		if err := a.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := holders(); got != "1 [run-a/node-1]" {
		t.Errorf("holders: %s", got)
	}
	if got := kindOf(t, b.TryLock(t.Context())); got != "failed_lock" {
		t.Errorf("%q", got)
	}
	waits := make(chan string, 100)
	b.Waiting = func(e *fleetlock.Error, _ time.Duration) { waits <- e.Value }
	got := make(chan error, 1)
	go func() { got <- b.Lock(t.Context()) }()
	if why := <-waits; !strings.Contains(why, "all 1 semaphore slots") {
		t.Errorf("waits because %s", why)
	}
	if err := a.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if got := holders(); got != "1 [run-b/node-1]" {
		t.Errorf("holders: %s", got)
	}
	for range 2 { // unbalanced
		if err := b.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	killedHolder(t, a, holders)
}

// killedHolder: a process that holds the slot is killed. Nobody gets the slot, everybody can see whose it is, and it
// can be given back in its name.
func killedHolder(t *testing.T, c fleetlock.Client, holders func() string) {
	program := filepath.Join(t.TempDir(), "slotholder")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./testdata/slotholder")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	holder := exec.Command(program, c.URL, c.Group, "run-killed/node-2")
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("held\n"))); err != nil {
		t.Fatal(err)
	}
	_ = holder.Process.Kill() // SIGKILL
	_ = holder.Wait()
	if got := holders(); got != "1 [run-killed/node-2]" {
		t.Errorf("after the kill: %s", got)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = c.Lock(short)
	if !errors.Is(err, context.DeadlineExceeded) || kindOf(t, err) != "failed_lock" {
		t.Errorf("the slot of a killed holder: %v", err)
	}
	dead := c
	dead.ID = "run-killed/node-2"
	if err := dead.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := holders(); got != "1 [run-a/node-1]" {
		t.Errorf("after its release: %s", got)
	}
	if err := c.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}
