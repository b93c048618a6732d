//go:build linux

package hostenv

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// serveDataPlane holds connections: each line that comes in goes back. It writes where it listens and how many
// connections it holds to files beside its record.
func serveDataPlane(ctx context.Context, e standin.Env, args []string) error {
	flags := flag.NewFlagSet("dataplane", flag.ContinueOnError)
	flags.SetOutput(e.Stderr())
	config := flags.String("config", release.Node.Config(), "configuration file")
	unit := flags.String("unit", "", "unit of this process")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := standin.ReadRelease(e, release.Node)
	if err != nil {
		return err
	}
	c, err := standin.ReadNodeConfig(e, *config, r)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("cannot use address: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	go func() {
		<-ctx.Done()
		_ = listener.Close()
	}()
	count := counter{write: func(n int) error {
		return e.WriteFile(standin.DataPlaneConnections(c.StateDir, *unit), []byte(strconv.Itoa(n)+"\n"), 0o644)
	}}
	if err := count.add(0); err != nil {
		return err
	}
	address := []byte(listener.Addr().String() + "\n")
	if err := e.WriteFile(standin.DataPlaneAddress(c.StateDir, *unit), address, 0o644); err != nil {
		return fmt.Errorf("cannot write address: %w", err)
	}
	return accept(ctx, listener, &count)
}

func accept(ctx context.Context, listener net.Listener, count *counter) error {
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot accept connection: %w", err)
		}
		if err := count.add(1); err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
			_ = count.add(-1)
		}()
	}
}

// counter counts connections and writes each new count.
type counter struct {
	mu    sync.Mutex
	n     int
	write func(n int) error
}

func (c *counter) add(d int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += d
	if err := c.write(c.n); err != nil {
		return fmt.Errorf("cannot write number of connections: %w", err)
	}
	return nil
}
