package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/run"
)

// prepared is a plan with everything that was asked to make it.
type prepared struct {
	plan    plan.Plan
	input   plan.Input
	answer  answer
	reports []report
	left    []plan.Block // blocks whose goal does not hold yet
	// unfinished is the run that ctrl remembers as not ended; nil: none.
	unfinished *run.Record
	staged     map[string]bool // hosts on which this very call staged
}

// report is one preview's outcome.
type report struct {
	preview plan.Preview
	report  checks.Report
}

// targets reads the target's packages, and the agent's.
func (w World) targets(t *targetFlags) (release.Target, []release.Deb, error) {
	if len(t.debs) == 0 {
		return release.Target{}, nil, fail(exitUsage, "kibo-rollout plan -i INVENTORY --debs DIR --to VERSION", "say where the target's packages are: --debs DIR")
	}
	found, err := release.ReadDebs(t.debs...)
	if err != nil {
		return release.Target{}, nil, fail(exitUsage, "", "cannot read the target's packages: %w", err)
	}
	target, err := release.NewTarget(t.to, found)
	if err != nil {
		return release.Target{}, nil, fail(exitUsage, "", "cannot use the target's packages: %w", err)
	}
	agents, err := w.agentDebs(t.agentDebs, append(slices.Clone(t.debs), besideProgram()...))
	return target, agents, err
}

// prepare asks the fleet everything, stages the target, runs the previews, and builds the plan.
func (s *session) prepare(ctx context.Context, t *targetFlags, observe func(run.Event)) (*prepared, error) {
	target, agents, err := s.w.targets(t)
	if err != nil {
		return nil, err
	}
	s.debs, s.t = append(slices.Clone(target.Debs), agents...), t
	stage := func(h inventory.Host) string { return plan.StageDir(h, target) }
	ans := s.look(ctx, stage)
	if err := ans.unreachable(); err != nil {
		return nil, err
	}
	p := &prepared{answer: ans}
	if p.unfinished, err = s.unfinished(ctx, ans); err != nil {
		return nil, err
	}
	if u := p.unfinished; u != nil && u.Plan.Target.Digest() != target.Digest() {
		return nil, fail(exitHeld, "kibo-rollout resume, with the .debs of "+u.Plan.Target.Version+"; or kibo-rollout abandon "+s.f.again(nil),
			"run %s to %s is not finished: it has to be gone on with or abandoned first; nothing was changed", u.Plan.ID, u.Plan.Target.Version)
	}
	id, err := newID(s.w)
	if err != nil {
		return nil, err
	}
	p.input = plan.Input{
		ID: id, By: s.w.User, Target: target, AgentDebs: agents, Serial: t.serial, CleanOld: t.cleanOld, Nodes: ans.nodes,
	}
	if ctrl, ok := s.ctrl(); ok {
		p.input.Ctrl = ctrl.Name
	}
	for _, h := range ans.hosts {
		p.input.Hosts = append(p.input.Hosts, plan.HostInput{Host: h.host, Facts: h.facts})
	}
	if err := p.mode(target); err != nil {
		return nil, err
	}
	if err := p.remaining(); err != nil {
		return nil, err
	}
	if len(p.left) > 0 && p.unfinished == nil { // a run's own walk stages and asks again
		if err := s.question(ctx, p, observe); err != nil {
			return nil, err
		}
	}
	return p, p.finish()
}

// mode says how the fleet has to be walked, by K1 to K5.
func (p *prepared) mode(target release.Target) error {
	var from []release.Build
	for _, h := range slices.Concat(p.answer.hosts, p.answer.more) {
		for _, pf := range h.facts.Parts {
			if v, err := pf.Version.Get(); err == nil && !pf.Part.Gateway() {
				revision, err := pf.Revision.Get()
				if err != nil {
					revision = "" // matters only off the release lines (K2), where an unknown one is another one
				}
				from = append(from, release.Build{Version: v, Revision: revision})
			}
		}
	}
	mode, why, err := release.ModeFor(from, release.Build{Version: target.Version})
	if err != nil {
		return fail(exitBlocked, "", "cannot upgrade to %s: %w", target.Version, err)
	}
	p.input.Mode, p.input.Why = plan.Mode(mode), why
	if p.input.Mode != plan.Rolling {
		return fail(exitBlocked, "", "cannot walk to %s: %s; this version of kibo-rollout walks rolling upgrades on one release line only; nothing was changed",
			target.Version, why)
	}
	return nil
}

// remaining finds out what is left to do, from the facts alone.
func (p *prepared) remaining() error {
	first, err := plan.Build(p.input)
	if err != nil {
		return fail(exitUsage, "", "%w; nothing was changed", err)
	}
	seen := p.answer.seen()
	p.left = first.Remaining(seen)
	p.input.Done = first.Done(seen)
	return nil
}

func (a answer) seen() plan.Seen {
	seen := plan.Seen{Facts: map[string]checks.Facts{}, Nodes: a.nodes}
	for _, h := range a.hosts {
		seen.Facts[h.host.Name] = h.facts
	}
	return seen
}

// question stages the target where something is left to do and asks the target programs.
func (s *session) question(ctx context.Context, p *prepared, observe func(run.Event)) error {
	if early := blocking(p.evaluate()); len(early) > 0 {
		p.input.Findings = early
		return nil // finish shows them; nothing is staged on hosts that cannot be upgraded
	}
	staging, err := plan.Staging(p.input)
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	p.staged = map[string]bool{}
	out, err := run.Walk(ctx, s.config(staging, p.noteStaged(observe), nil, run.Past{}))
	if err != nil {
		return err
	}
	if out.Class != run.Done {
		return s.stopped(out, "")
	}
	if p.reports, err = s.previews(ctx, p.input); err != nil {
		return err
	}
	for _, r := range p.reports {
		if r.preview.Part == release.Ctrl && r.report.MigrationDue {
			p.input.Migrate = true
		}
	}
	stage := func(h inventory.Host) string { return plan.StageDir(h, p.input.Target) }
	p.answer = s.look(ctx, stage)
	for i, h := range p.answer.hosts {
		p.input.Hosts[i].Facts = h.facts
	}
	return p.answer.unreachable()
}

// noteStaged remembers on which hosts this call staged: only there may it clean up.
func (p *prepared) noteStaged(observe func(run.Event)) func(run.Event) {
	return func(e run.Event) {
		if e.Kind == run.StepDone && strings.HasSuffix(e.Step, "/stage") {
			p.staged[e.Host] = true
		}
		if observe != nil {
			observe(e)
		}
	}
}

// previews asks the target programs of all hosts, each host in one exec.
func (s *session) previews(ctx context.Context, in plan.Input) ([]report, error) {
	asks, err := plan.Previews(in)
	if err != nil {
		return nil, err
	}
	out := make([]report, len(asks))
	errs := make([]error, len(asks))
	var wg sync.WaitGroup
	for i, a := range asks {
		wg.Go(func() {
			res, err := s.batch(ctx, a.Host, command.Batch{Commands: []command.Command{a.Command}})
			if errs[i] = err; err == nil {
				out[i] = report{a, checks.ParseReport(a.Part, true, res[0])}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// finish judges everything and builds the plan.
func (p *prepared) finish() error {
	p.input.Findings = p.evaluate()
	for _, r := range p.reports {
		for _, f := range r.report.Findings {
			f.Host, f.Part = r.preview.Host, string(r.preview.Part)
			p.input.Findings = append(p.input.Findings, f)
		}
	}
	var err error
	p.plan, err = plan.Build(p.input)
	if err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	return nil
}

func blocking(findings []checks.Finding) []checks.Finding {
	var out []checks.Finding
	for _, f := range findings {
		if f.Level.Blocks() {
			out = append(out, f)
		}
	}
	return out
}

// newID names a plan: when it was made, and enough chance that two made in one second differ.
func newID(w World) (string, error) {
	b := make([]byte, 3)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("cannot name the plan: %w", err)
	}
	return "r-" + w.Now().UTC().Format("20060102-150405") + "-" + hex.EncodeToString(b), nil
}

// source opens a package for upload: found by its checksum among the files that were named, whatever a plan calls it.
func (s *session) source(d release.Deb) (io.ReaderAt, io.Closer, error) {
	for _, have := range s.debs {
		if have.SHA256 != d.SHA256 {
			continue
		}
		f, err := os.Open(have.Path)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read package %s: %w", d.File, err)
		}
		return f, f, nil
	}
	return nil, nil, fmt.Errorf("package %s (sha256 %s) has to be uploaded, and is not among --debs", d.File, d.SHA256)
}
