package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Procs reads processes from /proc.
type Procs struct{ Root string } // normally "/proc"

// process is one process, told apart from a later one with the same number by its start time.
type process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot
	Boot  string `json:"boot"`  // boot id
	name  string
	ppid  int
}

func (p process) same(o process) bool {
	return p.PID == o.PID && p.Start == o.Start && p.Boot == o.Boot
}

func (p Procs) file(pid int, name string) string {
	return filepath.Join(p.Root, strconv.Itoa(pid), name)
}

// get reads one process.
func (p Procs) get(pid int) (process, error) {
	stat, err := os.ReadFile(p.file(pid, "stat"))
	if err != nil {
		return process{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	boot, err := os.ReadFile(filepath.Join(p.Root, "sys/kernel/random/boot_id"))
	if err != nil {
		return process{}, fmt.Errorf("cannot read the boot id: %w", err)
	}
	// The name is in parentheses and may hold spaces and parentheses itself.
	from, to := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if from < 0 || to < from {
		return process{}, fmt.Errorf("cannot read process %d: unexpected form", pid)
	}
	fields := strings.Fields(string(stat[to+1:]))
	if len(fields) < 20 {
		return process{}, fmt.Errorf("cannot read process %d: unexpected form", pid)
	}
	ppid, err1 := strconv.Atoi(fields[1])
	start, err2 := strconv.ParseUint(fields[19], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return process{}, fmt.Errorf("cannot read process %d: %w", pid, err)
	}
	return process{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot)), name: string(stat[from+1 : to]), ppid: ppid}, nil
}

// ancestors lists the processes above pid, nearest first.
func (p Procs) ancestors(pid int) ([]process, error) {
	self, err := p.get(pid)
	if err != nil {
		return nil, err
	}
	var up []process
	for next := self.ppid; next > 0 && len(up) < 64; {
		a, err := p.get(next)
		if err != nil {
			return up, err
		}
		up = append(up, a)
		next = a.ppid
	}
	return up, nil
}

// argv reads a process's words.
func (p Procs) argv(pid int) ([]string, error) {
	data, err := os.ReadFile(p.file(pid, "cmdline"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the command line of process %d: %w", pid, err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), nil
}

// cwd is where a process's relative paths begin, as a path that can be used here.
func (p Procs) cwd(pid int) string { return p.file(pid, "cwd") }

// jobKey is the key of the job whose unit the process runs in; "" if it runs in none. Only units of the
// system's own slice count: any user can name a unit of his own like a job.
func (p Procs) jobKey(pid int) (string, error) {
	data, err := os.ReadFile(p.file(pid, "cgroup"))
	if err != nil {
		return "", fmt.Errorf("cannot read the control group of process %d: %w", pid, err)
	}
	return jobKeyOf(string(data)), nil
}

func jobKeyOf(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || (parts[0] != "0" && parts[1] != "name=systemd") {
			continue
		}
		if rest, ok := strings.CutPrefix(parts[2], "/system.slice/"); ok {
			unit, _, _ := strings.Cut(rest, "/")
			if key, ok := keyOfUnit(unit); ok {
				return key
			}
		}
	}
	return ""
}
