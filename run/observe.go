package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// view is what a block has seen since its last action: looked at again only where it does not reach.
type view struct {
	seen    plan.Seen
	nodes   bool
	settled bool
}

func (v *view) forget() { *v = view{} }

func (v *view) again() *view { return &view{} }

// covers reports whether the condition can be judged without looking again.
func (v *view) covers(c plan.Cond) bool {
	for _, h := range c.Hosts() {
		if _, ok := v.seen.Facts[h]; !ok {
			return false
		}
	}
	return (v.nodes || !c.NeedsNodes()) && (v.settled || !c.Needs(plan.CondSettled))
}

// judge looks where the condition needs it and judges. One exec a host: the node list travels with the facts of its host.
func (w *walk) judge(ctx context.Context, v *view, c plan.Cond) (plan.Verdict, *failure) {
	if !v.covers(c) {
		if f := w.look(ctx, v, c); f != nil {
			return plan.Verdict{}, f
		}
	}
	seen := v.seen
	seen.Taken, seen.StepDone = w.has, w.isDone
	seen.Begun = w.Past.begins(w.Plan.Blocks)
	w.mu.Lock()
	seen.Noted = make(map[string][]checks.VMM, len(w.notedBy))
	for h, vmms := range w.notedBy {
		seen.Noted[h] = vmms
	}
	w.mu.Unlock()
	seen.Staged, seen.Programs = staged(w.Plan)
	return c.Judge(seen), nil
}

func (w *walk) isDone(step string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[step]
}

func (w *walk) look(ctx context.Context, v *view, c plan.Cond) *failure {
	hosts := c.Hosts()
	nodes := c.NeedsNodes()
	if nodes && !slices.Contains(hosts, w.CLIHost) {
		hosts = append(hosts, w.CLIHost)
	}
	fresh := view{nodes: nodes, seen: plan.Seen{Facts: map[string]checks.Facts{}}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	for _, h := range hosts {
		wg.Go(func() {
			facts, rows, err := w.ask(ctx, h, nodes && h == w.CLIHost)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = err
			}
			fresh.seen.Facts[h] = facts
			if nodes && h == w.CLIHost {
				fresh.seen.Nodes = rows
			}
		})
	}
	wg.Wait()
	if first != nil {
		return lost(first)
	}
	if c.Needs(plan.CondSettled) {
		fresh.settled = true
		if !counted(fresh.seen.Nodes) {
			fresh.seen.Settling = w.settling(ctx)
		}
	}
	*v = fresh
	return nil
}

// ask reads the facts of one host, and the node list where asked, in one exec. A dropped connection is dialed again once.
func (w *walk) ask(ctx context.Context, host string, nodes bool) (checks.Facts, checks.Fact[[]checks.NodeRow], error) {
	var more []command.Command
	if nodes {
		more = append(more, w.Nodes)
	}
	facts, res, err := checks.GatherWith(ctx, asker{w, host}, w.Wants[host], more...)
	if err != nil || !nodes {
		return facts, checks.Unknown[[]checks.NodeRow](checks.ErrNotGathered), err
	}
	return facts, NodeRows(res[0]), nil
}

// asker runs commands that only read on one host.
type asker struct {
	w    *walk
	host string
}

// RunBatch asks again once over a new connection if the first was lost: asking twice does no harm.
func (a asker) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	return a.w.batch(ctx, a.host, b)
}

// NodeRows reads the outcome of the node list command.
func NodeRows(res command.Result) checks.Fact[[]checks.NodeRow] {
	if res.Exit != 0 {
		return checks.Unknown[[]checks.NodeRow](fmt.Errorf("the node list ended with exit status %d: %.200q", res.Exit, res.Stderr))
	}
	rows, err := checks.ParseNodes(res.Stdout)
	if err != nil {
		return checks.Unknown[[]checks.NodeRow](err)
	}
	return checks.Known(rows)
}

// batch runs commands that only read; a connection that got lost is dialed again once, since asking twice does no harm.
func (w *walk) batch(ctx context.Context, host string, b command.Batch) ([]command.Result, error) {
	for try := 0; ; try++ {
		conn, err := w.Fleet.Conn(ctx, host)
		var res []command.Result
		if err == nil {
			res, err = conn.RunBatch(ctx, b)
		}
		var e *remote.Error
		if err == nil || try > 0 || !errors.As(err, &e) || e.Kind != remote.Lost {
			return res, err
		}
	}
}

// counted reports whether the node list itself tells running commands and Transfers of every node.
func counted(nodes checks.Fact[[]checks.NodeRow]) bool {
	rows, err := nodes.Get()
	return err == nil && !slices.ContainsFunc(rows, func(r checks.NodeRow) bool { return r.Commands < 0 || r.Transfers < 0 })
}

// settling asks ctrl's own report for unfinished objects (K22).
func (w *walk) settling(ctx context.Context) checks.Fact[[]string] {
	if w.Settle.Host == "" {
		return checks.Unknown[[]string](errors.New("there is no ctrl host to ask"))
	}
	res, err := w.batch(ctx, w.Settle.Host, command.Batch{Commands: []command.Command{w.Settle.Command}})
	if err != nil {
		return checks.Unknown[[]string](err)
	}
	rep := checks.ParseReport(release.Ctrl, true, res[0])
	if !rep.Readable() {
		return checks.Unknown[[]string](errors.New("ctrl's report cannot be read"))
	}
	return checks.Known(rep.Unfinished)
}

// staged says what each staging directory must hold, from the plan's own uploads.
func staged(p plan.Plan) (map[string]map[string]string, map[string]map[release.Part]string) {
	files := map[string]map[string]string{}
	programs := map[string]map[release.Part]string{}
	for _, h := range p.Hosts {
		files[h.Name] = map[string]string{}
		programs[h.Name] = map[release.Part]string{}
		for _, part := range h.Parts {
			programs[h.Name][part] = p.Target.Version
		}
	}
	for _, b := range p.Blocks {
		for _, st := range b.Steps {
			for _, a := range st.Act {
				if a.Verb == plan.Upload && a.Deb.Part.Valid() {
					files[a.Host][a.Deb.File] = a.Deb.SHA256
				}
			}
		}
	}
	return files, programs
}
