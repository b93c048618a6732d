package plan

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Operations of a part that the inventory can override with kibo_commands.
const (
	opStop    = "stop"
	opStart   = "start"
	opCheck   = "check"
	opPreview = "preview"
	opInstall = "install"
	opMigrate = "migrate"
)

// aptInstall are the words before the .deb's path: no question is asked, nothing else is removed or pulled in,
// a held lock is waited for, and the site's edited configuration files stay.
func aptInstall() []string {
	return []string{
		"apt-get", "install", "-y", "--no-remove", "--no-install-recommends",
		"-o", "DPkg::Lock::Timeout=120",
		"-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
	}
}

// defaultCommand is the documented command of an operation (CONTRACT sections 4-7), with placeholders in braces.
func defaultCommand(p release.Part, op string) []string {
	switch op {
	case opStop:
		return []string{"systemctl", "stop", "{unit}"}
	case opStart:
		return []string{"systemctl", "start", "{unit}"}
	case opInstall:
		return append(aptInstall(), "{deb}")
	case opMigrate:
		return []string{"runuser", "-u", "kibotos-ctrl", "--", "kibotos-ctrl", "migrate", "--config", "{config}"}
	case opCheck, opPreview:
		if p == release.Ctrl { // K21: the same command before and after the stop
			return []string{"{next}/usr/bin/kibotos-ctrl", "check-upgrade", "--config", "{config}"}
		}
		argv := []string{"{next}/usr/bin/kibotos-node", "check-upgrade"}
		if op == opPreview {
			argv = append(argv, "--preview") // K20: the only form that may run while the service is up
		}
		return append(argv, "--config", "{config}", "--runtime-dir", "{next}/usr/lib/kibotos/node") // K13
	}
	return nil
}

// fill puts values in place of the placeholders, word by word: no shell ever sees the result unquoted.
func fill(argv []string, values map[string]string) []string {
	out := slices.Clone(argv)
	for i := range out {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			out[i] = strings.ReplaceAll(out[i], "{"+k+"}", values[k])
		}
	}
	return out
}

// JobCommand is the call that asks the gate of a host for a job. attempt counts from 1: a new attempt is a new key,
// the same key joins the job that is there.
func JobCommand(run string, a Action, attempt int) command.Command {
	argv := []string{"kibo-agent", "run", "--key", JobKey(run, a, attempt), "--operation", a.Job.Operation}
	argv = append(argv, bindings(a.Job.Packages, a.Job.SHA256)...)
	argv = append(argv, "--output", "json", "--")
	c := a.Command
	c.Argv = append(argv, a.Command.Argv...)
	c.As = command.Root
	return c
}

// JobKey names a job on its host: run, step and attempt.
func JobKey(run string, a Action, attempt int) string {
	b := []byte(run + "." + a.Job.Step)
	for i, c := range b {
		ok := c == '.' || c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !ok {
			b[i] = '.'
		}
	}
	return string(b) + "." + string(rune('0'+attempt/10%10)) + string(rune('0'+attempt%10))
}

// WaitCommand re-attaches to a job.
func WaitCommand(key string) command.Command {
	return command.Command{
		Argv: []string{"kibo-agent", "wait", "--key", key, "--output", "json"}, As: command.Root, Effect: command.Reads,
	}
}

// WatchCommand ends with exit status 0 when nobody holds the host any more, told by the host itself (Z7), and otherwise when its
// time is up.
func WatchCommand(limit time.Duration) command.Command {
	return command.Command{
		Argv: []string{"kibo-agent", "watch", "--until", "free", "--timeout", limit.String(), "--output", "jsonl"},
		As:   command.Root, Effect: command.Reads, Timeout: limit + 10*time.Second,
	}
}

func bindings(packages map[string]string, sums []string) []string {
	var argv []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		argv = append(argv, "--package", name+"="+packages[name])
	}
	for _, sum := range sums {
		argv = append(argv, "--sha256", sum)
	}
	return argv
}

// Window is a permission to be placed on a host.
type Window struct {
	ID         string
	For        time.Duration
	Until      time.Time // instead of For: an end that the operator named
	Operations []string
	Packages   map[string]string
	SHA256     []string
	Once       bool
	By, Reason string
}

// AllowCommand places the window. Its end is computed by the host's own clock.
func AllowCommand(w Window) command.Command {
	end := []string{"--for", w.For.String()}
	if !w.Until.IsZero() {
		end = []string{"--until", w.Until.UTC().Format(time.RFC3339)}
	}
	argv := append([]string{"kibo-agent", "allow"}, append(end, "--id", w.ID)...)
	for _, op := range w.Operations {
		argv = append(argv, "--operation", op)
	}
	argv = append(argv, bindings(w.Packages, w.SHA256)...)
	if w.Once {
		argv = append(argv, "--once")
	}
	if w.By != "" {
		argv = append(argv, "--issued-by", w.By)
	}
	if w.Reason != "" {
		argv = append(argv, "--reason", w.Reason)
	}
	return command.Command{Argv: append(argv, "--output", "json"), As: command.Root, Effect: command.Changes}
}

// CloseCommand takes the window away, and no other one. Without an id it takes away whichever is there.
func CloseCommand(id string) command.Command {
	argv := []string{"kibo-agent", "close"}
	if id != "" {
		argv = append(argv, "--id", id)
	}
	return command.Command{Argv: append(argv, "--output", "json"), As: command.Root, Effect: command.Changes}
}

// HoldCommand says no to every change on a host until the hold is released.
func HoldCommand(id, why, by string) command.Command {
	argv := []string{"kibo-agent", "hold", "--id", id, "--why", why, "--by", by, "--output", "json"}
	return command.Command{Argv: argv, As: command.Root, Effect: command.Changes}
}

// ReleaseCommand takes a hold away, or every one without an id.
func ReleaseCommand(id string) command.Command {
	which := []string{"--all"}
	if id != "" {
		which = []string{"--id", id}
	}
	return command.Command{
		Argv: append(append([]string{"kibo-agent", "release"}, which...), "--output", "json"), As: command.Root, Effect: command.Changes,
	}
}

// jobOperation is what the gate calls an operation of a part.
func jobOperation(op string) string {
	switch op {
	case opStop:
		return gate.OpStop
	case opStart:
		return gate.OpStart
	case opInstall:
		return gate.OpInstall
	case opMigrate:
		return gate.OpMigrate
	}
	return op
}
