package remote

import (
	"context"
	"fmt"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// ReadOnly lets through only commands that say they read. It is what keeps plan, check and status from changing
// hosts. A refused call is an *Error of kind Refused, and nothing reaches the host.
func ReadOnly(host string, c Conn) Conn {
	return &guarded{inner: c, host: host, allowed: []command.Effect{command.Reads}}
}

// StagesOnly lets through reading and staging: commands that say so, and uploads.
func StagesOnly(host string, c Conn) Conn {
	return &guarded{inner: c, host: host, allowed: []command.Effect{command.Reads, command.Stages}}
}

// guarded is a connection with a list of permitted effects. What is not named is refused, the empty effect above all.
type guarded struct {
	inner   Conn
	host    string
	allowed []command.Effect
}

func (g *guarded) check(what string, effect command.Effect) error {
	for _, a := range g.allowed {
		if a == effect {
			return nil
		}
	}
	if effect == "" {
		effect = "does not say what it may do"
	}
	return &Error{Host: g.host, Kind: Refused, Err: fmt.Errorf("cannot run %s here: it %s", what, effect)}
}

func (g *guarded) Run(ctx context.Context, c command.Command) (command.Result, error) {
	if err := g.check(c.String(), c.Effect); err != nil {
		return command.Result{}, err
	}
	return g.inner.Run(ctx, c)
}

func (g *guarded) RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error) {
	for _, c := range b.Commands {
		if err := g.check(c.String(), c.Effect); err != nil {
			return nil, err
		}
	}
	return g.inner.RunBatch(ctx, b)
}

func (g *guarded) Upload(ctx context.Context, u Upload) error {
	if err := g.check("an upload to "+u.Path, command.Stages); err != nil {
		return err
	}
	return g.inner.Upload(ctx, u)
}

func (g *guarded) Hold(ctx context.Context, c command.Command) (*Held, error) {
	if err := g.check(c.String(), c.Effect); err != nil {
		return nil, err
	}
	return g.inner.Hold(ctx, c)
}

func (g *guarded) Close() error { return g.inner.Close() }
