//go:build linux

package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ready is the mark of a host that was whole once: booted, packages installed, parts started.
func (l *Lab) readyMark(name string) string { return filepath.Join(l.hostDir(name), "ready") }

// whole reports whether the host can stay as it is. Any other is made anew.
func (l *Lab) whole(host Host) bool { return exists(l.readyMark(host.Name)) && l.Running(host.Name) }

// make makes a host from its base: booted, and with the packages of its parts.
func (l *Lab) make(ctx context.Context, host Host) error {
	start := time.Now()
	if err := l.dropHost(ctx, host.Name); err != nil {
		return err
	}
	if err := l.boot(ctx, host); err != nil {
		return err
	}
	booted := since(start)
	if l.state.Version != "" {
		if err := l.install(ctx, host); err != nil {
			return err
		}
	}
	l.log("%-8s %-8s %s booted in %s, made in %s", host.Name, host.Suite, host.Address, booted, since(start))
	return nil
}

// boot mounts the host's files and starts it from whatever state it is in.
func (l *Lab) boot(ctx context.Context, host Host) error {
	if err := l.stop(ctx, host.Name); err != nil {
		return err
	}
	dir := l.hostDir(host.Name)
	fresh := !exists(filepath.Join(dir, "upper")) // a host whose making was cut short is never booted again
	table, err := readMounts()
	if err != nil {
		return err
	}
	if len(table.below(dir)) == 0 {
		if err := mountOverlay(l.state.Bases[host.Suite], dir); err != nil {
			return err
		}
	}
	if fresh {
		if err := l.personalise(host); err != nil {
			return fmt.Errorf("cannot prepare host %s: %w", host.Name, err)
		}
	}
	if err := l.start(host); err != nil {
		return err
	}
	return l.waitRunning(ctx, host)
}

// personalise writes the files that make a host itself: names, ids, keys, and where its sshd listens.
func (l *Lab) personalise(host Host) error {
	root, err := os.OpenRoot(filepath.Join(l.hostDir(host.Name), "root"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	private, err := os.ReadFile(l.hostKeyPath(host.Name))
	if err != nil {
		return err
	}
	public, err := os.ReadFile(l.keyPath() + ".pub")
	if err != nil {
		return err
	}
	files := []struct {
		path string
		data string
		mode fs.FileMode
	}{
		{"/etc/hostname", host.Name + "\n", 0o644},
		{"/etc/machine-id", hex.EncodeToString(id) + "\n", 0o444},
		{"/etc/hosts", l.etcHosts(), 0o644},
		{"/etc/ssh/ssh_host_ed25519_key", string(private), 0o600},
		{"/etc/ssh/sshd_config.d/kibo-lab.conf", fmt.Sprintf(
			"Port %d\nListenAddress %s\nHostKey /etc/ssh/ssh_host_ed25519_key\n", host.Port, host.Address), 0o644},
	}
	for _, file := range files {
		if err := putFile(root, file.path, []byte(file.data), file.mode); err != nil {
			return err
		}
	}
	for _, user := range []string{User, PasswordUser} {
		if err := authorize(root, user, public); err != nil {
			return err
		}
	}
	return nil
}

// authorize lets the lab's key in as the user.
func authorize(root *os.Root, user string, public []byte) error {
	dir := "home/" + user + "/.ssh"
	info, err := root.Stat(dir)
	if err != nil {
		return err
	}
	file := dir + "/authorized_keys"
	if err := putFile(root, file, public, 0o600); err != nil {
		return err
	}
	owner, ok := fileStat(info)
	if !ok {
		return fmt.Errorf("cannot tell the owner of %s", dir)
	}
	return root.Chown(file, int(owner.Uid), int(owner.Gid))
}

// etcHosts lets the hosts know each other by name; sudo looks up its own.
func (l *Lab) etcHosts() string {
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, host := range l.state.Hosts {
		fmt.Fprintf(&text, "%s %s\n", host.Address, host.Name)
	}
	return text.String()
}
