package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/fleetlock"
)

// closeLimit is how long requests that are being answered may take when the server is told to end.
const closeLimit = 10 * time.Second

// rebootGate answers for the host, and tells each answer.
type rebootGate struct {
	reboots agent.Reboots
	group   string // "": any
	told    func(format string, args ...any)
}

// Permit implements fleetlock.Gate.
func (g rebootGate) Permit(ctx context.Context, who fleetlock.Identity) error {
	if err := g.mine(who); err != nil {
		return err
	}
	err := g.reboots.Permit(ctx, who.ID, who.Group)
	if err != nil {
		g.told("reboot of %s in group %s refused: %v", who.ID, who.Group, err)
		return err
	}
	g.told("reboot of %s in group %s permitted", who.ID, who.Group)
	return nil
}

// Settled implements fleetlock.Gate.
func (g rebootGate) Settled(ctx context.Context, who fleetlock.Identity) error {
	if err := g.mine(who); err != nil {
		return err
	}
	return g.reboots.Settled(ctx, who.ID, who.Group)
}

func (g rebootGate) mine(who fleetlock.Identity) error {
	if g.group != "" && who.Group != g.group {
		return &fleetlock.Error{Status: http.StatusBadRequest, Kind: "unknown_group", Value: "this host is in group " + g.group}
	}
	return nil
}

// serveFleetLock is the process of kibo-agent-fleetlock.service.
func serveFleetLock(ctx context.Context, h Host, args []string) (int, error) {
	f := newFlags("fleetlock")
	path := f.set.String("config", fleetlock.ConfigPath, "")
	listen := f.set.String("listen", "", "")
	if err := f.parse(args, false); err != nil {
		return 0, err
	}
	c, err := fleetLockConfig(*path, *listen)
	if err != nil {
		return 0, err
	}
	runtime.GOMAXPROCS(1)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return 0, fmt.Errorf("cannot serve FleetLock: %w", err)
	}
	told := func(format string, args ...any) { _, _ = fmt.Fprintf(h.Stderr, format+"\n", args...) }
	server := fleetlock.Handler{Gate: rebootGate{reboots: agent.Reboots{Jobs: h.Jobs}, group: c.Group, told: told}}.Server()
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		_ = server.Shutdown(ending)
	})
	told("serving FleetLock on http://%s/", l.Addr())
	_, _ = sd.SdNotify(false, sd.SdNotifyReady)
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return 0, fmt.Errorf("cannot serve FleetLock: %w", err)
	}
	<-ended // requests that were being answered
	return ExitOK, nil
}

// fleetLockConfig is the file's, or just the flag.
func fleetLockConfig(path, listen string) (fleetlock.Config, error) {
	if listen != "" {
		c := fleetlock.Config{Listen: listen}
		if err := c.Check(); err != nil {
			return c, usageError{err}
		}
		return c, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fleetlock.Config{}, fmt.Errorf("cannot read the configuration of FleetLock: %w", err)
	}
	c, err := fleetlock.ParseConfig(data)
	if err != nil {
		return c, fmt.Errorf("cannot use %s: %w", path, err)
	}
	return c, nil
}
