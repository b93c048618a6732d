package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Gather reads all facts of a host in one exec. The error is the Runner's: then nothing is known of the host. Whatever one
// command could not tell is an unknown fact with its reason, and the others stand.
func Gather(ctx context.Context, r Runner, w Want) (Facts, error) {
	f, _, err := GatherWith(ctx, r, w)
	return f, err
}

// GatherWith reads all facts of a host, and runs more commands in the same exec: their results are returned in order.
func GatherWith(ctx context.Context, r Runner, w Want, more ...command.Command) (Facts, []command.Result, error) {
	b := FactsBatch(w)
	n := len(b.Commands)
	b.Commands = append(b.Commands, more...)
	var asked time.Time
	if w.Now != nil {
		asked = w.Now()
	}
	results, err := r.RunBatch(ctx, b)
	if err == nil && len(results) != len(b.Commands) {
		err = fmt.Errorf("%d answers to %d questions", len(results), len(b.Commands))
	}
	// With every answer at hand an error is about root being refused, which is a fact like others (Facts.Sudo).
	if err != nil && len(results) != len(b.Commands) {
		return Facts{Host: w.Host}, nil, fmt.Errorf("cannot read the facts of %s: %w", w.Host, err)
	}
	f := ParseFacts(w, results[:n])
	if w.Now != nil {
		f.Skew = skew(f.Clock, asked, w.Now())
	}
	return f, results[n:], nil
}

// FactsBatch is the one exec that Gather makes: fixed commands that only read. The order is that of FactTable.
func FactsBatch(w Want) command.Batch {
	var b command.Batch
	for _, row := range factRows() {
		for _, a := range row.asks(w) {
			c := a.command
			c.Effect = command.Reads
			b.Commands = append(b.Commands, c)
		}
	}
	return b
}

// ParseFacts reads the results of FactsBatch(w). Results that are missing make unknown facts.
func ParseFacts(w Want, results []command.Result) Facts {
	f := Facts{Host: w.Host, Parts: make([]PartFacts, len(w.Parts))}
	for i, p := range w.Parts {
		f.Parts[i].Part = p
	}
	next := 0
	for _, row := range factRows() {
		for _, a := range row.asks(w) {
			if next < len(results) {
				a.read(&f, results[next])
			} else {
				a.fail(&f, errors.New("the host gave no answer"))
			}
			next++
		}
	}
	settleAgent(&f)
	return f
}

// settleAgent tells "no agent" from "an agent that does not answer" by what dpkg knows: sudo's word for a missing program
// varies.
func settleAgent(f *Facts) {
	_, err := f.Agent.Get()
	pkgs, unknown := f.Packages.Get()
	if err == nil || unknown != nil || errors.Is(err, ErrNoAgent) {
		return
	}
	absent := !slices.ContainsFunc(pkgs, func(p Package) bool { return p.Name == agentPackage && p.State == "installed" })
	if _, root := f.Sudo.Get(); absent && root == nil {
		f.Agent = Unknown[gate.Status](ErrNoAgent)
	}
}

const agentPackage = "kibo-agent"

// ask is one command and the fact that it yields.
type ask struct {
	command command.Command
	read    func(*Facts, command.Result)
	fail    func(*Facts, error)
}

// asking ties a command to the place of its fact and to its parser, which sees any exit status.
func asking[T any](place func(*Facts) *Fact[T], parse func(command.Result) (T, error), as string, argv ...string) ask {
	return ask{
		command: command.Command{Argv: argv, As: as},
		read: func(f *Facts, res command.Result) {
			v, err := parse(res)
			if err == nil {
				err = sound(res)
			}
			if err != nil {
				*place(f) = Unknown[T](err)
				return
			}
			*place(f) = Known(v)
		},
		fail: func(f *Facts, err error) { *place(f) = Unknown[T](err) },
	}
}

// text makes a parser of whole output out of one that sees only successful output.
func text[T any](parse func(string) (T, error)) func(command.Result) (T, error) {
	return func(res command.Result) (T, error) {
		if err := succeeded(res); err != nil {
			var none T
			return none, err
		}
		return parse(string(res.Stdout))
	}
}

// packages lists the packages that are asked after.
func packages() []string {
	var out []string
	for _, p := range release.Parts() {
		out = append(out, p.Package())
	}
	return append(out, agentPackage)
}
