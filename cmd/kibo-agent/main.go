// Command kibo-agent is the host's side of kibo-rollout: the gate, the jobs and the package managers' hooks.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/cli"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

var version = "0.0.0+unreleased"

func main() {
	self, err := os.Executable()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "error: cannot find my own program: %v\n", err)
		os.Exit(cli.ExitError)
	}
	os.Exit(cli.Main(context.Background(), host(self), os.Args[1:]))
}

// host is this machine: the real clock, /proc, systemd and root's own files.
func host(self string) cli.Host {
	dir := filepath.Dir(gate.DefaultPath)
	procs := agent.Procs{Root: "/proc"}
	jobs := agent.Jobs{
		Dir: dir, Now: time.Now, Inhibitors: agent.Inhibitors,
		Window: agent.Window{Trust: agent.Root(), Path: gate.DefaultPath, Now: time.Now,
			Seen:     agent.Seen{Path: filepath.Join(dir, "seen"), Synced: agent.Synchronised},
			Identity: agent.Identity{Root: "/", Up: agent.Uptime},
			Holds:    agent.Holds{Dir: gate.HoldsPath, Trust: agent.Root()}},
		Units:    agent.Systemd{Program: self, Cgroups: "/sys/fs/cgroup"},
		Versions: agent.Versions{Path: agent.VersionsPath, Installed: agent.Installed, Now: time.Now},
	}
	return cli.Host{
		Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Jobs:   jobs,
		Layers: agent.Layers{Root: "/", AptDump: agent.AptDump},
		Marker: agent.Marker{Path: agent.MarkerPath},
		Guard:  agent.Guard{Jobs: jobs, Procs: procs, Sum: agent.FileSum, PID: os.Getpid()},
		Dpkg:   agent.Dpkg{Procs: procs, PID: os.Getpid(), Control: agent.ReadControl, Installed: agent.Installed},
		// Caught, not ignored: ignored signals would be ignored by the job's command as well.
		Shield: func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) },
	}
}
