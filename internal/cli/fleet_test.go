package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// bench is an embedded fleet with everything an operator has on a laptop.
type bench struct {
	t     *testing.T
	fleet *simfleet.Fleet
	inv   simfleet.Inventory
	debs  string // 0.1.4 and the agent's package
	dir   string
	stop  chan struct{}
}

// newBench starts a fleet of one ctrl, nodes and one gateway on 0.1.2, two VMs on each node.
func newBench(t *testing.T, spec simfleet.Spec) *bench {
	t.Helper()
	if spec.Version == "" {
		spec.Version = "0.1.2"
	}
	if spec.InstancesPerNode == 0 {
		spec.InstancesPerNode = 2
	}
	f, err := simfleet.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	b := &bench{t: t, fleet: f, dir: t.TempDir(), stop: make(chan struct{})}
	if b.inv, err = f.WriteInventory(b.dir); err != nil {
		t.Fatal(err)
	}
	b.debs = b.release("0.1.4")
	if _, err := f.WriteAgentDeb(b.debs, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	return b
}

// release writes the .debs of a release and returns their directory.
func (b *bench) release(key string) string {
	b.t.Helper()
	dir := filepath.Join(b.dir, "debs-"+key)
	if err := b.fleet.WriteDebs(dir, key); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

func (b *bench) world(out, errs *bytes.Buffer) World {
	return World{
		Version: "test", In: strings.NewReader(""), Out: out, Err: errs, Now: time.Now, Stop: b.stop, Home: b.dir, User: "ann@desk",
		Env: func(name string) string {
			if name == "XDG_STATE_HOME" {
				return filepath.Join(b.dir, "state")
			}
			return ""
		},
		Pause: func(ctx context.Context, d time.Duration) {
			select {
			case <-time.After(d / 10):
			case <-ctx.Done():
			}
		},
	}
}

// session is a session of its own, as another process would have.
func (b *bench) session() *session {
	b.t.Helper()
	var out, errs bytes.Buffer
	s, err := b.world(&out, &errs).open(&fleetFlags{inventory: []string{b.inv.File}, limit: "all", forks: 50, output: "text"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.close)
	return s
}

// said is what one command printed and how it ended.
type said struct {
	code     int
	out, err string
}

func (s said) String() string { return s.out + s.err }

// run runs one command line; the inventory is added behind the command's own words.
func (b *bench) run(words ...string) said {
	b.t.Helper()
	var out, errs bytes.Buffer
	code := Main(b.t.Context(), b.world(&out, &errs), append(words, "-i", b.inv.File))
	return said{code, out.String(), errs.String()}
}

func (b *bench) apply(more ...string) said {
	b.t.Helper()
	return b.run(append([]string{"apply", "--debs", b.debs, "--to", "0.1.4", "--yes"}, more...)...)
}

func (b *bench) want(s said, code int, texts ...string) {
	b.t.Helper()
	if s.code != code {
		b.t.Fatalf("exit code %d, want %d\n%s", s.code, code, s)
	}
	for _, text := range texts {
		if !strings.Contains(s.String(), text) {
			b.t.Errorf("it does not say %q:\n%s", text, s)
		}
	}
}

// vmms are all VM processes of the fleet.
func (b *bench) vmms() map[string]string {
	out := map[string]string{}
	for _, m := range b.fleet.Machines() {
		for _, u := range m.VMMs() {
			data, err := json.Marshal([]any{u.Name, u.MainPID, u.Start})
			if err != nil {
				b.t.Fatal(err)
			}
			out[m.Name()+"/"+u.Name] = string(data)
		}
	}
	return out
}

func (b *bench) sameVMMs(before map[string]string) {
	b.t.Helper()
	now := b.vmms()
	for name, was := range before {
		if now[name] != was {
			b.t.Errorf("VMM %s was %s and is %s", name, was, now[name])
		}
	}
}

// onTarget holds every machine to the target: packages, running units, no window, no staging, no unknown command.
func (b *bench) onTarget(version string) {
	b.t.Helper()
	for _, m := range b.fleet.Machines() {
		for _, p := range m.Spec.Parts {
			pkg, ok := m.Installed(p.Package())
			if !ok || pkg.Version != version {
				b.t.Errorf("%s: %s is %q, want %s", m.Name(), p.Package(), pkg.Version, version)
			}
			if u := m.Unit(p.Unit()); u.Active != "active" {
				b.t.Errorf("%s: %s is %s", m.Name(), p.Unit(), u.Active)
			}
		}
		b.clean(m)
	}
	st := b.run("status")
	if strings.Contains(st.out, "DRAIN") {
		b.t.Errorf("a node is still drained:\n%s", st.out)
	}
}

// clean holds a machine to what a run has to leave behind: nothing.
func (b *bench) clean(m *simfleet.Machine) {
	b.t.Helper()
	if v, _ := m.Gate(); v.Open {
		b.t.Errorf("%s: a window is open: %s", m.Name(), v.Reason)
	}
	if names := b.list(m, "/var/lib/kibo-rollout/stage"); len(names) > 0 {
		b.t.Errorf("%s: left in the staging directory: %v", m.Name(), names)
	}
	if names := m.Unknown(); len(names) > 0 {
		b.t.Errorf("%s: commands that a host does not have: %v", m.Name(), names)
	}
}

func (b *bench) list(m *simfleet.Machine, dir string) []string {
	infos, err := m.FS().ReadDir(memfs.Cred{}, dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, i := range infos {
		out = append(out, i.Name())
	}
	return out
}

// jobs counts the jobs of an operation that a machine ran.
func (b *bench) jobs(m *simfleet.Machine, operation string) int {
	b.t.Helper()
	out, err := m.Run(context.Background(), "root", "kibo-agent", "status", "--output", "json")
	if err != nil {
		b.t.Fatal(err)
	}
	var st gate.Status
	if err := json.Unmarshal([]byte(out.Stdout), &st); err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, j := range st.Jobs {
		if j.Operation == operation {
			n++
		}
	}
	return n
}

func (b *bench) machine(name string) *simfleet.Machine {
	b.t.Helper()
	m := b.fleet.Machine(name)
	if m == nil {
		b.t.Fatalf("no machine %s", name)
	}
	return m
}

func (b *bench) flip(host string, part release.Part, name, value string) {
	b.t.Helper()
	if err := b.machine(host).SetSwitch(part, name, []byte(value)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}
