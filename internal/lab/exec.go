//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Output is what a command on a host gave. A non-zero exit is no error.
type Output struct {
	Stdout string
	Stderr string
	Exit   int
}

// Exec runs a command on a host as root. It does not go through sshd, so it works while that hangs.
// The error says that the command could not be run at all.
func (l *Lab) Exec(ctx context.Context, host string, argv ...string) (Output, error) {
	var stdout, stderr bytes.Buffer
	exit, err := l.Stream(ctx, host, nil, &stdout, &stderr, argv...)
	return Output{Stdout: stdout.String(), Stderr: stderr.String(), Exit: exit}, err
}

// Must runs a command as Exec does, and takes a non-zero exit for an error. It returns standard output.
func (l *Lab) Must(ctx context.Context, host string, argv ...string) (string, error) {
	output, err := l.Exec(ctx, host, argv...)
	if err == nil && output.Exit != 0 {
		err = fmt.Errorf("cannot run %q on host %s: exit %d\n%s", argv, host, output.Exit,
			lastLines(output.Stdout+output.Stderr, 20))
	}
	return output.Stdout, err
}

// Stream runs a command on a host as root with the given streams and returns its exit status.
func (l *Lab) Stream(ctx context.Context, host string, in io.Reader, out, errs io.Writer, argv ...string) (int, error) {
	pid, err := l.leader(host)
	if err != nil {
		return -1, err
	}
	enter := []string{"--target", strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--",
		"/usr/bin/env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		"LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	command := exec.CommandContext(ctx, "nsenter", append(enter, argv...)...)
	command.Stdin, command.Stdout, command.Stderr = in, out, errs
	// nsenter runs the command as its child: on a cancelled context both must end, and nobody may wait for a
	// grandchild that holds the streams.
	command.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return unix.Kill(-command.Process.Pid, unix.SIGKILL) }
	command.WaitDelay = 2 * time.Second
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return -1, fmt.Errorf("cannot run %q on host %s: %w", argv, host, err)
	}
	return 0, nil
}

// Put writes a file on a running host, owned by root, and makes missing directories.
func (l *Lab) Put(host, file string, data []byte, mode fs.FileMode) error {
	root, err := l.openRoot(host)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return putFile(root, file, data, mode)
}

// openRoot opens the file system of a running host. Links on the host cannot lead out of it.
func (l *Lab) openRoot(host string) (*os.Root, error) {
	pid, err := l.leader(host)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Join("/proc", strconv.Itoa(pid), "root"))
	if err != nil {
		return nil, fmt.Errorf("cannot open the files of host %s: %w", host, err)
	}
	return root, nil
}

// putFile writes a file below the root.
func putFile(root *os.Root, file string, data []byte, mode fs.FileMode) error {
	name := strings.TrimPrefix(path.Clean(file), "/")
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("cannot make directory of %s: %w", file, err)
	}
	if err := root.WriteFile(name, data, mode.Perm()); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	if err := root.Chmod(name, mode.Perm()); err != nil { // whatever the umask, and whatever was there
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	return nil
}
