//go:build linux

package hostenv

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"golang.org/x/sys/unix"
)

const (
	apiPath   = "/v1"
	bodyLimit = 1 << 20
	// stopGrace is how long open connections may end by themselves at a stop (K55).
	stopGrace = 3 * time.Second
)

// Run is the whole program: services are run here, everything else is the logic's. It returns the exit status.
func Run(program string, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	e, err := New(ctx, stdout, stderr)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	serve := service(program, args)
	if serve == nil {
		return standin.Main(e, program, args)
	}
	if err := serve(ctx, e); err != nil {
		_, _ = fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

// service finds the service that a command line means, or nil.
func service(program string, args []string) func(context.Context, standin.Env) error {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	switch {
	case program == release.Ctrl.Package() && word == "serve":
		return func(ctx context.Context, e standin.Env) error { return serveCtrl(ctx, e, args[1:]) }
	case program == release.Node.Package() && word == "serve":
		return func(ctx context.Context, e standin.Env) error { return serveNode(ctx, e, args[1:]) }
	case program == release.Node.Package() && word == "dataplane":
		return func(ctx context.Context, e standin.Env) error { return serveDataPlane(ctx, e, args[1:]) }
	case program == release.E2B.Package() && word == "":
		return func(ctx context.Context, e standin.Env) error { return serveGateway(ctx, e, release.E2B) }
	case program == release.GW.Package() && word == "":
		return func(ctx context.Context, e standin.Env) error { return serveGateway(ctx, e, release.GW) }
	}
	return nil
}

func configFlag(args []string, p release.Part, e standin.Env) (string, error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(e.Stderr())
	file := flags.String("config", p.Config(), "configuration file")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	return *file, nil
}

// ready tells systemd that the service is up; without systemd it tells nobody.
func ready() error {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("cannot notify systemd: %w", err)
	}
	return nil
}

func serveCtrl(ctx context.Context, e standin.Env, args []string) error {
	config, err := configFlag(args, release.Ctrl, e)
	if err != nil {
		return err
	}
	server, err := standin.CtrlStart(e, config)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+apiPath, func(w http.ResponseWriter, r *http.Request) {
		var req standin.Request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyLimit)).Decode(&req); err != nil {
			http.Error(w, "cannot parse request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(server.Handle(req))
	})
	return errors.Join(serveHTTP(ctx, e, server.Listen, mux), server.Stop())
}

// serveHTTP serves until ctx ends, then lets connections end by themselves for a while before it cuts them.
func serveHTTP(ctx context.Context, e standin.Env, addr string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	var open connections
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ConnState: open.note}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := ready(); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_, _ = fmt.Fprintf(e.Stderr(), "warn: %d connection(s) on %s were still open at the deadline and are closed\n", open.count(), addr)
		return server.Close()
	}
	return nil
}

func serveNode(ctx context.Context, e standin.Env, args []string) error {
	config, err := configFlag(args, release.Node, e)
	if err != nil {
		return err
	}
	node, err := standin.NodeStart(e, config)
	if err != nil {
		return err
	}
	if err := ready(); err != nil {
		return errors.Join(err, node.Stop())
	}
	tick := time.NewTicker(standin.ReportInterval)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return node.Stop()
		case <-tick.C:
		}
		now := ""
		if err := node.Report(); err != nil {
			now = err.Error()
		}
		if now != said {
			_, _ = fmt.Fprintln(e.Stderr(), "ctrl: "+orOK(now))
		}
		said = now
	}
}

func orOK(s string) string {
	if s == "" {
		return "connected"
	}
	return s
}

// serveGateway takes its settings from the environment, as systemd reads them from config.env.
func serveGateway(ctx context.Context, e standin.Env, p release.Part) error {
	settings := map[string]string{}
	for _, pair := range os.Environ() {
		if key, value, ok := strings.Cut(pair, "="); ok && strings.HasPrefix(key, "KIBOTOS_") {
			settings[key] = value
		}
	}
	gateway, err := standin.GatewayStart(e, p, settings)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if err := gateway.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	// A connection that stays open until the client or the deadline at a stop ends it (K55).
	mux.HandleFunc("GET /hold", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "held")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return serveHTTP(ctx, e, gateway.Listen, mux)
}
