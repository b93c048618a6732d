package standin_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/memenv"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
)

const (
	ctrlAddr   = "127.0.1.1:7400"
	ctrlConfig = "/etc/kibotos/ctrl/config.toml"
	nodeConfig = "/etc/kibotos/node/config.toml"
	ctrlState  = "/var/lib/kibotos/ctrl"
	nodeState  = "/var/lib/kibotos/node"
)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fleet is a network with one ctrl host and a clock.
type fleet struct {
	t       *testing.T
	clock   *clock
	network *memenv.Network
	ctrl    *memenv.Host
}

func newFleet(t *testing.T, version string) *fleet {
	t.Helper()
	f := &fleet{t: t, clock: &clock{now: time.Unix(1_700_000_000, 0)}, network: memenv.NewNetwork()}
	f.ctrl = f.host()
	f.install(f.ctrl, "", version)
	f.write(f.ctrl, ctrlConfig, fmt.Sprintf("listen = %q\n", ctrlAddr))
	f.write(f.ctrl, standin.KiboConfig, fmt.Sprintf("ctrl = %q\n", ctrlAddr))
	return f
}

func (f *fleet) host() *memenv.Host { return memenv.NewHost(f.network, f.clock.Now) }

// node makes a node host with a version installed.
func (f *fleet) node(name, version string) *memenv.Host {
	f.t.Helper()
	h := f.host()
	f.install(h, "", version)
	f.write(h, nodeConfig, fmt.Sprintf("name = %q\nctrl = %q\nlisten = \"127.0.1.9:7410\"\npool = 4\n", name, ctrlAddr))
	return h
}

// install puts the files of a version under root ("" for installing, a directory for an unpacked copy).
func (f *fleet) install(h *memenv.Host, root, version string) {
	f.t.Helper()
	parts, ok := standin.Find(version)
	if !ok {
		f.t.Fatalf("no version %s", version)
	}
	for _, r := range parts {
		for _, file := range pack.Contents(r, nil) {
			if file.Conffile {
				continue
			}
			if err := h.WriteFile(root+file.Path, file.Content, file.Mode); err != nil {
				f.t.Fatal(err)
			}
		}
	}
}

func (f *fleet) write(h *memenv.Host, name, content string) {
	f.t.Helper()
	if err := h.WriteFile(name, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) turn(h *memenv.Host, state, name, content string) {
	f.t.Helper()
	f.write(h, standin.SwitchPath(state, name), content)
}

// run runs a program and returns what it printed and its exit status.
func (f *fleet) run(h *memenv.Host, user, program string, args ...string) (string, int) {
	f.t.Helper()
	var out bytes.Buffer
	name := program[strings.LastIndex(program, "/")+1:]
	code := standin.Main(h.Env(program, user, &out, &out), name, args)
	return out.String(), code
}

// must runs a program as root that has to succeed.
func (f *fleet) must(h *memenv.Host, program string, args ...string) string {
	f.t.Helper()
	out, code := f.run(h, "root", program, args...)
	if code != 0 {
		f.t.Fatalf("%s %v: exit %d\n%s", program, args, code, out)
	}
	return out
}

func (f *fleet) startCtrl() *standin.CtrlServer {
	f.t.Helper()
	s, err := standin.CtrlStart(f.env(f.ctrl, "/usr/bin/kibotos-ctrl"), ctrlConfig)
	if err != nil {
		f.t.Fatal(err)
	}
	f.network.Listen(s.Listen, s.Handle)
	return s
}

func (f *fleet) env(h *memenv.Host, program string) standin.Env {
	var out bytes.Buffer
	return h.Env(program, "root", &out, &out)
}

// startNode starts the node service as systemd would show it.
func (f *fleet) startNode(h *memenv.Host) *standin.Node {
	f.t.Helper()
	n, err := standin.NodeStart(f.env(h, "/usr/bin/kibotos-node"), nodeConfig)
	if err != nil {
		f.t.Fatal(err)
	}
	h.SetUnit(standin.Unit{Name: release.Node.Unit(), Active: "active", MainPID: 77, Processes: 1})
	return n
}

func (f *fleet) stopNode(h *memenv.Host, n *standin.Node) {
	f.t.Helper()
	if err := n.Stop(); err != nil {
		f.t.Fatal(err)
	}
	h.SetUnit(standin.Unit{Name: release.Node.Unit(), Active: "inactive"})
}

// state returns a node's row of `kibo node list` as one line of single-spaced columns.
func (f *fleet) state(name string) string {
	f.t.Helper()
	for line := range strings.Lines(f.must(f.ctrl, "/usr/bin/kibo", "node", "list")) {
		if fields := strings.Fields(line); fields[0] == name {
			return strings.Join(fields[1:], " ")
		}
	}
	return "absent"
}

func (f *fleet) wantState(name, want string) {
	f.t.Helper()
	if got := f.state(name); got != want {
		f.t.Errorf("state of %s: got %q, want %q", name, got, want)
	}
}
