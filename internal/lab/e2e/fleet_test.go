//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
)

// AgentVersion is the version of the agent's package that TestMain builds.
const AgentVersion = "0.1.0"

// Lab is the lab that all tests share.
func Lab(t *testing.T) *lab.Lab {
	t.Helper()
	return shared.lab
}

// Fresh makes hosts anew, the named ones or all: release 0.1.2, nothing else installed, the same addresses and keys.
// It may be called in t.Cleanup too.
func Fresh(t *testing.T, names ...string) *lab.Lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	if err := shared.lab.Remake(ctx, names...); err != nil {
		t.Fatal(err)
	}
	return shared.lab
}

// Exec runs a command on a host as root, not through sshd, and fails the test if it exits non-zero.
func Exec(t *testing.T, host string, argv ...string) string {
	t.Helper()
	out, err := shared.lab.Must(t.Context(), host, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// Try runs a command on a host as root and returns whatever it gave.
func Try(t *testing.T, host string, argv ...string) lab.Output {
	t.Helper()
	out, err := shared.lab.Exec(t.Context(), host, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Copy places a file of this machine on a host, mode 0644, owned by root.
func Copy(t *testing.T, host, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.lab.Put(host, to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// SSH runs a command line on a host as the login user through OpenSSH's client.
func SSH(t *testing.T, host, line string) lab.Output {
	t.Helper()
	return Run(t, "ssh", "-F", shared.lab.SSHConfig(), host, line)
}

// Program is the path of a program that TestMain built: kibo-rollout, kibo-agent.
func Program(t *testing.T, name string) string {
	t.Helper()
	if err := shared.failed[name]; err != nil {
		t.Fatal(err)
	}
	return filepath.Join(shared.dir, "bin", name)
}

// AgentDeb is the path of the agent's package.
func AgentDeb(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(shared.dir, "bin", "kibo-agent_*.deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one package of the agent, got %v %v %v", found, err, shared.failed[agentPackage])
	}
	return found[0]
}

// Rollout runs kibo-rollout on the lab's inventory, with its own state directory and no terminal.
func Rollout(t *testing.T, args ...string) lab.Output {
	t.Helper()
	return Run(t, Program(t, "kibo-rollout"), append(args, "-i", shared.lab.Inventory())...)
}

// StateDir is the XDG_STATE_HOME of programs that tests run on this machine.
func StateDir() string { return filepath.Join(shared.dir, "state") }

// Run runs a program on this machine and returns whatever it gave.
func Run(t *testing.T, program string, args ...string) lab.Output {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(limited, program, args...)
	command.Env = append(os.Environ(), "XDG_STATE_HOME="+StateDir(), "NO_COLOR=1")
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("cannot run %s %q: %v", program, args, err)
	}
	return lab.Output{Stdout: stdout.String(), Stderr: stderr.String(), Exit: command.ProcessState.ExitCode()}
}
