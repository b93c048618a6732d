package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// kibotosProgram runs a command of the stand-in from the file that was named, installed or unpacked.
func kibotosProgram(ctx context.Context, m *Machine, p *shell.Proc) int {
	m.w.Sleep(ctx, m.w.Lat.Program)
	return standin.Main(&env{m: m, ctx: ctx, p: p}, path.Base(p.Args[0]), p.Args[1:])
}

// launch starts the program of a unit's ExecStart.
func (m *Machine) launch(ctx context.Context, name string) ([]string, service, error) {
	argv := strings.Fields(m.setting(name, "ExecStart"))
	if len(argv) == 0 {
		return nil, nil, fmt.Errorf("cannot start %s: no ExecStart", name)
	}
	who := m.setting(name, "User")
	if who == "" {
		who = "root"
	}
	p, err := m.Proc(who, argv...)
	if err != nil {
		return nil, nil, err
	}
	if run, _, _ := m.resolvePath(p, argv[0]); run == nil {
		return nil, nil, fmt.Errorf("cannot start %s: %s cannot be executed", name, argv[0])
	}
	log := &logWriter{m: m, unit: name}
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), log, log
	e := &env{m: m, ctx: m.ctx, p: p}
	_ = ctx
	s, err := m.serve(e, name, argv)
	return argv, s, err
}

func (m *Machine) serve(e *env, name string, argv []string) (service, error) {
	config := argAfter(argv, "--config")
	switch path.Base(argv[0]) {
	case release.Ctrl.Package():
		return nilable(standin.CtrlStart(e, orDefault(config, release.Ctrl.Config())))
	case release.Node.Package():
		return nilable(standin.NodeStart(e, orDefault(config, release.Node.Config())))
	case release.E2B.Package(), release.GW.Package():
		data, err := e.ReadFile(strings.TrimPrefix(m.setting(name, "EnvironmentFile"), "-"))
		if err != nil {
			return nil, fmt.Errorf("cannot start %s: %w", name, err)
		}
		part := release.Part(strings.TrimPrefix(path.Base(argv[0]), "kibotos-"))
		return nilable(standin.GatewayStart(e, part, standin.ParseEnvFile(data)))
	}
	return nil, nil // some other service: it is there, and does nothing
}

// nilable keeps a typed nil out of the interface.
func nilable[T service](s T, err error) (service, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func argAfter(argv []string, name string) string {
	for i, a := range argv {
		if a == name && i+1 < len(argv) {
			return argv[i+1]
		}
		if v, ok := strings.CutPrefix(a, name+"="); ok {
			return v
		}
	}
	return ""
}

// logWriter sends what a service prints to the journal.
type logWriter struct {
	m    *Machine
	unit string
}

func (l *logWriter) Write(b []byte) (int, error) {
	for _, line := range lines(b) {
		l.m.journal(l.unit, line)
	}
	return len(b), nil
}

// api is one ctrl that listens, with the nodes that report to it.
type api struct {
	ctrl  *standin.CtrlServer
	nodes map[*standin.Node]string // node → its machine's name
}

var errNoAnswer = errors.New("connection refused")

// announce makes a started service reachable: a ctrl for its nodes, a node for its ctrl.
func (m *Machine) announce(s service) {
	switch s := s.(type) {
	case *standin.CtrlServer:
		m.w.mu.Lock()
		a := m.w.apis[s.Listen]
		a.ctrl = s
		m.w.apis[s.Listen] = a
		m.w.mu.Unlock()
		m.w.report(s.Listen)
	case *standin.Node:
		m.w.mu.Lock()
		a := m.w.apis[s.Config.Ctrl]
		if a.nodes == nil {
			a.nodes = map[*standin.Node]string{}
		}
		a.nodes[s] = m.conf.Name
		m.w.apis[s.Config.Ctrl] = a
		m.w.mu.Unlock()
	}
}

// withdraw takes a service off the network before it stops.
func (m *Machine) withdraw(s service) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	switch s := s.(type) {
	case *standin.CtrlServer:
		a := m.w.apis[s.Listen]
		if a.ctrl == s {
			a.ctrl = nil
			m.w.apis[s.Listen] = a
		}
	case *standin.Node:
		if a := m.w.apis[s.Config.Ctrl]; a.nodes != nil {
			delete(a.nodes, s)
		}
	}
}

// report makes every node of a ctrl report to it. Real nodes do so all the time; here they do when somebody asks
// ctrl for the list, so that thousands of them cost nothing in between.
func (w *World) report(addr string) {
	w.mu.RLock()
	nodes := maps.Clone(w.apis[addr].nodes)
	up := w.apis[addr].ctrl != nil
	w.mu.RUnlock()
	if !up {
		return
	}
	order := slices.SortedFunc(maps.Keys(nodes), func(a, b *standin.Node) int {
		return strings.Compare(a.Config.Name, b.Config.Name)
	})
	for _, n := range order {
		_ = n.Report() // a node that is refused is shown so in ctrl's list
	}
}

func (w *World) call(addr string, req standin.Request) (standin.Response, error) {
	if req.Op == standin.OpList {
		w.report(addr)
	}
	w.mu.RLock()
	ctrl := w.apis[addr].ctrl
	w.mu.RUnlock()
	if ctrl == nil {
		return standin.Response{}, fmt.Errorf("dial tcp %s: %w", addr, errNoAnswer)
	}
	return ctrl.Handle(req), nil
}

// SetSwitch turns a switch of the stand-in on (K-rules' blockers and failures), or off with a nil value.
func (m *Machine) SetSwitch(part release.Part, name string, value []byte) error {
	file := path.Join("/var/lib/kibotos", string(part), "switches", name)
	if value == nil {
		return m.fs.RemoveAll(memfs.Cred{}, file)
	}
	if err := m.fs.MkdirAll(memfs.Cred{}, path.Dir(file), 0o755); err != nil {
		return err
	}
	return m.fs.WriteFile(memfs.Cred{}, file, value, 0o644)
}
