package cli

import (
	"context"
	"slices"
	"sync"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/run"
)

// session is one call's inventory, its selection, and the connections to it.
type session struct {
	w     World
	f     *fleetFlags
	t     *targetFlags     // nil: the command has none
	all   []inventory.Host // the whole fleet
	hosts []inventory.Host // selected
	pool  *remote.Pool
	debs  []release.Deb // package files at hand on this machine
}

func noStage(inventory.Host) string { return "" }

// open reads the inventory and makes ready to dial; nothing is connected to yet.
func (w World) open(f *fleetFlags) (*session, error) {
	inv, err := w.load(f)
	if err != nil {
		return nil, err
	}
	of, err := w.fleet(inv, f)
	if err != nil {
		return nil, err
	}
	s := &session{w: w, f: f, all: of.all, hosts: of.hosts}
	s.pool, err = w.pool(f, s.all, s.asked())
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) close() { _ = s.pool.Close() } // the process ends; the other side notices by itself

// asked are the selected hosts, and those that are asked whatever is selected: where ctrl runs, since the run's record and the
// lock live there, and where the kibo command is run, since the nodes are listed there.
func (s *session) asked() []inventory.Host {
	out := slices.Clone(s.hosts)
	cli, _ := s.cli()
	ctrl, _ := s.ctrl()
	for _, h := range s.all {
		have := slices.ContainsFunc(out, func(o inventory.Host) bool { return o.Name == h.Name })
		if !have && (h.Name == cli || h.Name == ctrl.Name) {
			out = append(out, h)
		}
	}
	return out
}

// state is what one host answered.
type state struct {
	host  inventory.Host
	facts checks.Facts
	err   error
}

// answer is what the fleet answered.
type answer struct {
	hosts []state // selected
	more  []state // asked as well
	nodes checks.Fact[[]checks.NodeRow]
}

func (s *session) ctrl() (inventory.Host, bool) {
	i := slices.IndexFunc(s.all, func(h inventory.Host) bool { return h.Has(release.Ctrl) })
	if i < 0 {
		return inventory.Host{}, false
	}
	return s.all[i], true
}

// cli says on which host and how the kibo command is called for the fleet.
func (s *session) cli() (string, []string) {
	ctrl, ok := s.ctrl()
	if !ok {
		return "", nil
	}
	argv := ctrl.Kibo.CLI
	if len(argv) == 0 {
		argv = []string{"kibo"}
	}
	if on := ctrl.Kibo.CLIOn; on != "" && on != "ctrl" {
		return on, argv
	}
	return ctrl.Name, argv
}

func (s *session) want(h inventory.Host, stage string) checks.Want {
	return checks.Want{
		Host: h.Name, Parts: h.Parts, VMMUnits: h.Kibo.VMMUnits, StageDir: stage, StateDir: h.Kibo.StateDir,
		Commands: h.Kibo.Commands, Now: s.w.Now,
	}
}

// look asks the selected hosts, ctrl's and the CLI's for their facts, each in one exec, and for the node list in the same one.
func (s *session) look(ctx context.Context, stage func(inventory.Host) string) answer {
	cliHost, argv := s.cli()
	hosts := s.asked()
	states := make([]state, len(hosts))
	nodes := checks.Unknown[[]checks.NodeRow](checks.ErrNotGathered)
	var wg sync.WaitGroup
	for i, h := range hosts {
		wg.Go(func() {
			var more []command.Command
			if h.Name == cliHost {
				more = append(more, checks.NodesCommand(argv))
			}
			facts, res, err := checks.GatherWith(ctx, runner{s, h.Name}, s.want(h, stage(h)), more...)
			states[i] = state{host: h, facts: facts, err: err}
			if err == nil && len(more) > 0 {
				nodes = run.NodeRows(res[0])
			}
		})
	}
	wg.Wait()
	n := len(s.hosts)
	return answer{hosts: states[:n:n], more: states[n:], nodes: nodes}
}

func (s *session) batch(ctx context.Context, host string, b command.Batch) ([]command.Result, error) {
	return runner{s, host}.RunBatch(ctx, b)
}

// runner runs commands on one host of the session.
type runner struct {
	s    *session
	host string
}

// RunBatch dials the host if need be.
func (r runner) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	conn, err := r.s.pool.Conn(ctx, r.host)
	if err != nil {
		return nil, err
	}
	return conn.RunBatch(ctx, b)
}
