//go:build lab && linux

// Package e2e holds the tests that run against real Debian hosts. They share one lab, which TestMain makes and takes
// down; a test that needs hosts as they were at first calls Fresh.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
)

// defaultDir is the directory of this package's lab, apart from the one of `lab up`. KIBO_LAB_DIR names another.
const defaultDir = "/var/lib/kibo-lab/e2e"

// agentPackage names the agent's .deb among the programs.
const agentPackage = "agent-deb"

// shared is what TestMain made for all tests.
var shared struct {
	lab    *lab.Lab
	dir    string           // of the lab
	source string           // the checkout
	failed map[string]error // programs that could not be built: fails the tests that want them
}

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := around(ctx, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

// around brings the lab up, runs the tests and takes the lab down. KIBO_LAB_KEEP=1 leaves it, to look at.
func around(ctx context.Context, m *testing.M) (code int, err error) {
	shared.source, err = filepath.Abs("../../..")
	if err != nil {
		return 1, err
	}
	shared.dir = cmp.Or(os.Getenv("KIBO_LAB_DIR"), defaultDir)
	owner, err := lab.Own(ctx, shared.dir) // two runs at once take turns
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, owner.Close()) }()
	if err := lab.Down(ctx, shared.dir); err != nil {
		return 1, err
	}
	if os.Getenv("KIBO_LAB_KEEP") != "1" {
		defer func() {
			ending, cancel := context.WithTimeout(context.Background(), time.Minute) // also when interrupted
			defer cancel()
			err = errors.Join(err, lab.Down(ending, shared.dir))
		}()
	}
	start := time.Now()
	shared.lab, err = lab.Up(ctx, lab.Spec{Dir: shared.dir, Cache: os.Getenv("KIBO_LAB_CACHE"), Source: shared.source,
		Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, "%6.1fs  "+format+"\n", append([]any{time.Since(start).Seconds()}, args...)...)
		}})
	if err != nil {
		return 1, err
	}
	if err := buildPrograms(ctx); err != nil {
		return 1, err
	}
	fmt.Fprintf(os.Stderr, "%6.1fs  programs built\n", time.Since(start).Seconds())
	return m.Run(), nil
}

// buildPrograms builds what the tests try: both programs, and the agent's package.
func buildPrograms(ctx context.Context) error {
	bin := filepath.Join(shared.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	steps := []struct {
		program string
		argv    []string
	}{
		{"kibo-rollout", []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", bin + "/", "./cmd/kibo-rollout"}},
		{"kibo-agent", []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", bin + "/", "./cmd/kibo-agent"}},
		{agentPackage, []string{"go", "run", "./agent/pack/cmd/agent-deb", "-out", bin, "-version", AgentVersion, "-arch", "amd64"}},
	}
	shared.failed = map[string]error{}
	for _, step := range steps {
		build := exec.CommandContext(ctx, step.argv[0], step.argv[1:]...)
		build.Dir = shared.source
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			shared.failed[step.program] = fmt.Errorf("cannot build %s: %w\n%s", step.program, err, bytes.TrimSpace(output))
		}
	}
	return nil
}
