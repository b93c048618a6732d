//go:build linux

package lab

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// KillHost ends a host as a power cut does: nothing on it is told. Its files stay as they are.
func (l *Lab) KillHost(ctx context.Context, name string) error {
	if _, err := l.Host(name); err != nil {
		return err
	}
	return l.stop(ctx, name)
}

// BootHost boots a host that is down, with the files it has, and waits until it is running.
func (l *Lab) BootHost(ctx context.Context, name string) error {
	host, err := l.Host(name)
	if err != nil {
		return err
	}
	if l.Running(name) {
		return l.waitRunning(ctx, host)
	}
	return l.boot(ctx, host)
}

// Reboot reboots a host the orderly way and waits until it is running again.
func (l *Lab) Reboot(ctx context.Context, name string) error {
	host, err := l.Host(name)
	if err != nil {
		return err
	}
	before, err := l.leader(name)
	if err != nil {
		return err
	}
	if _, err := l.Must(ctx, name, "systemctl", "reboot"); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	for {
		if now, err := l.leader(name); err == nil && now != before {
			return l.waitRunning(ctx, host)
		}
		if err := pause(limited, 50*time.Millisecond); err != nil {
			return fmt.Errorf("cannot reboot host %s: %w", name, err)
		}
	}
}

// StopSSHD freezes the host's sshd, also for connections that are open: to clients the host hangs.
func (l *Lab) StopSSHD(ctx context.Context, name string) error {
	return l.signalSSHD(ctx, name, unix.SIGSTOP)
}

// ContinueSSHD lets a frozen sshd go on.
func (l *Lab) ContinueSSHD(ctx context.Context, name string) error {
	return l.signalSSHD(ctx, name, unix.SIGCONT)
}

// signalSSHD signals every process of ssh.service: the listener, and one or two for each connection.
func (l *Lab) signalSSHD(ctx context.Context, name string, signal unix.Signal) error {
	_, err := l.Must(ctx, name, "systemctl", "kill", "--signal="+strconv.Itoa(int(signal)), "ssh.service")
	return err
}
