//go:build linux

package lab

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed boot.sh
var bootScript string

// errDown says that a host is not running.
var errDown = errors.New("host is down")

// start boots the host's container and returns at once. It outlives this process.
func (l *Lab) start(host Host) error {
	dir := l.hostDir(host.Name)
	group := hostCgroup(l.cgroups, l.state.ID, host.Name)
	loop, machine := filepath.Join(group, "loop"), filepath.Join(group, "machine")
	for _, path := range []string{loop, machine} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("cannot make control group of host %s: %w", host.Name, err)
		}
	}
	console, err := os.OpenFile(filepath.Join(dir, "console.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("cannot open console of host %s: %w", host.Name, err)
	}
	defer func() { _ = console.Close() }()
	nspawn := exec.Command("/bin/sh", "-c", bootScript, "kibo-lab-boot", loop, machine,
		"systemd-nspawn", "--quiet", "--boot", "--directory="+filepath.Join(dir, "root"),
		"--register=no", "--keep-unit", "--console=passive", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
		"--machine="+machineName(l.state.ID, host.Name), "--hostname="+host.Name)
	// The hosts' systemd wants the unified hierarchy, whatever this machine's own uses.
	nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	nspawn.Stdout, nspawn.Stderr = console, console
	nspawn.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := nspawn.Start(); err != nil {
		return fmt.Errorf("cannot start host %s: %w", host.Name, err)
	}
	go func() { _ = nspawn.Wait() }() // only to leave no zombie; the outcome is seen on the host
	return nil
}

// leader returns the process id, as this machine sees it, of the host's PID 1.
func (l *Lab) leader(name string) (int, error) {
	pids, err := cgroupPIDs(filepath.Join(hostCgroup(l.cgroups, l.state.ID, name), "machine"))
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
		if err == nil && isInit(string(status)) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("cannot find host %s: %w", name, errDown)
}

// isInit reports whether a /proc/PID/status is that of the systemd that is PID 1 of another PID namespace.
// Before nspawn has turned into it, the process still sees this machine's files: it must not be entered.
func isInit(status string) bool {
	for _, line := range strings.Split(status, "\n") {
		key, value, _ := strings.Cut(line, ":")
		switch ids := strings.Fields(value); key {
		case "Name":
			if len(ids) != 1 || ids[0] != "systemd" {
				return false
			}
		case "NSpid":
			return len(ids) > 1 && ids[len(ids)-1] == "1"
		}
	}
	return false
}

// waitRunning waits until systemd on the host says that it is running and sshd answers.
func (l *Lab) waitRunning(ctx context.Context, host Host) error {
	limited, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	state := "not started"
	for {
		// Asked again and again: with --wait, systemctl can miss the end of a boot that is just ending.
		output, err := l.Exec(limited, host.Name, "systemctl", "is-system-running")
		if word := strings.TrimSpace(output.Stdout); err == nil && word != "" {
			state = word
		}
		if state == "running" && answers(host) {
			return nil
		}
		if state == "degraded" {
			failed, _ := l.Exec(limited, host.Name, "systemctl", "--failed", "--plain", "--no-legend")
			return fmt.Errorf("cannot boot host %s: systemd says degraded: %s", host.Name, strings.TrimSpace(failed.Stdout))
		}
		if err := pause(limited, 100*time.Millisecond); err != nil {
			console, _ := os.ReadFile(filepath.Join(l.hostDir(host.Name), "console.log"))
			return fmt.Errorf("cannot boot host %s: systemd says %q, sshd answers: %t: %w\n%s",
				host.Name, state, answers(host), err, lastLines(string(console), 15))
		}
	}
}

// bootLimit is how long a host may take to boot on a busy machine.
const bootLimit = 90 * time.Second

// answers reports whether the host's sshd takes connections.
func answers(host Host) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(host.Address, strconv.Itoa(host.Port)), time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
