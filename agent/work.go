package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainLimit is how long output is still read after the command has ended, when something it started keeps
// the pipe open.
const drainLimit = 3 * time.Second

// beginLimit is how long after its permission a job may begin: as long as its caller waits for that.
const beginLimit = 2 * startLimit

// Environment is what every job runs with, whatever the caller's: no language, no questions, no helper that
// restarts services behind the walk's back.
func Environment() []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "LC_ALL=C", "LANGUAGE=C",
		"DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none", "APT_LISTBUGS_FRONTEND=none",
		"NEEDRESTART_MODE=l", "NEEDRESTART_SUSPEND=1", "UCF_FORCE_CONFFOLD=1",
	}
}

// Work is the process of the job's unit. It holds the job's and the host's lock itself, so that they end when
// the job does, runs the command once, and leaves its exit status durably. A job that began before is never
// run a second time.
func (j Jobs) Work(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	d := j.dir(key)
	var asked ordered
	if err := readJSON(d.order(), &asked); err != nil {
		return err
	}
	for _, path := range []string{d.alive(), j.busyLock()} {
		// Normally free. After a caller that died while starting this job, another may run first.
		held, err := takeLock(context.Background(), path, unix.LOCK_EX)
		if err != nil {
			return err
		}
		defer held.release()
	}
	if _, err := os.Lstat(d.began()); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot run job %s: it began before", key)
	}
	// Whoever asked has been told by now that nothing was started, and the window may have ended.
	if late := j.Now().Sub(asked.Permitted); late > beginLimit {
		return fmt.Errorf("cannot run job %s: it was permitted %s ago and has not begun since", key, late.Round(time.Second))
	}
	out, err := newOutput(d.output())
	if err != nil {
		return err
	}
	if err := writeJSON(d.began(), begun{Started: j.Now().UTC(), PID: os.Getpid()}, 0o600); err != nil {
		return err
	}
	exit := run(asked.Argv, out)
	end := ended{Exit: exit, Ended: j.Now().UTC()}
	return errors.Join(out.close(), writeJSON(d.exit(), end, 0o600))
}

// run runs argv to its end and returns its exit status: 128+n for signal n, 127 and 126 as shells do when it
// cannot be started.
func run(argv []string, out *output) int {
	path, err := find(argv[0])
	if err != nil {
		_, _ = fmt.Fprintf(out, "cannot run %s: %v\n", argv[0], err)
		return 127
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Env: Environment(), Dir: "/", Stdout: out, Stderr: out, WaitDelay: drainLimit}
	err = cmd.Run()
	if cmd.ProcessState == nil {
		_, _ = fmt.Fprintf(out, "cannot run %s: %v\n", argv[0], err)
		if errors.Is(err, fs.ErrNotExist) {
			return 127
		}
		return 126
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// find looks a program up in the fixed path, not in the caller's.
func find(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if filepath.Base(name) != name {
		return "", errors.New("neither an absolute path nor a plain name")
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errors.New("no such program")
}
