//go:build linux

package hostenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/standin"
)

const unitLimit = 30 * time.Second

// systemdRuns reports whether systemd is in charge: not so while packages are installed into a bare root file system.
func systemdRuns() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

func (e *env) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(e.ctx, unitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

func (e *env) Unit(name string) (standin.Unit, error) {
	u := standin.Unit{Name: name, Active: "inactive"}
	if !systemdRuns() {
		return u, nil
	}
	out, err := e.run("systemctl", "show", "-p", "ActiveState,MainPID,ControlGroup,ExecMainStartTimestampMonotonic", "--", name)
	if err != nil {
		return u, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[key] = value
	}
	u.Active, u.Start = fields["ActiveState"], fields["ExecMainStartTimestampMonotonic"]
	u.MainPID, err = strconv.Atoi(fields["MainPID"])
	if err != nil || u.Active == "" {
		return u, fmt.Errorf("cannot read state of %s: ActiveState %q, MainPID %q", name, u.Active, fields["MainPID"])
	}
	u.Processes, err = processes(fields["ControlGroup"])
	return u, err
}

// processes counts the processes of a control group and of those below it. It reads what each process says of
// itself, so that it does not matter where control groups are mounted.
func processes(group string) (int, error) {
	if group == "" {
		return 0, nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("cannot count processes of %s: /proc shows none", group)
	}
	n := 0
	for _, file := range files {
		// A process that ended since is not there to be counted.
		if data, err := os.ReadFile(file); err == nil && belongs(string(data), group) {
			n++
		}
	}
	return n, nil
}

// belongs reports whether the content of /proc/PID/cgroup names the group or one below it.
func belongs(content, group string) bool {
	for line := range strings.Lines(content) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && (fields[2] == group || strings.HasPrefix(fields[2], group+"/")) {
			return true
		}
	}
	return false
}

// StartUnit makes a transient service: it belongs to systemd, not to the service that asks for it.
func (e *env) StartUnit(spec standin.UnitSpec) (standin.Unit, error) {
	args := []string{"--quiet", "--collect", "--unit=" + spec.Name, "--description=" + spec.Description,
		"--property=Type=exec", "--"}
	if _, err := e.run("systemd-run", append(args, spec.Argv...)...); err != nil {
		return standin.Unit{}, err
	}
	return e.Unit(spec.Name)
}

func (e *env) StopUnit(name string) error {
	if !systemdRuns() {
		return nil
	}
	u, err := e.Unit(name)
	if err != nil || (u.Active == "inactive" && u.Processes == 0) {
		return err
	}
	_, err = e.run("systemctl", "stop", "--", name)
	return err
}
