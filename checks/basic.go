package checks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

func parseClock(out string) (time.Time, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return time.Time{}, fmt.Errorf("not a time: %q", printable(out))
	}
	return time.Unix(n, 0).UTC(), nil
}

// skew is how far a host's clock is ahead. It told whole seconds at some moment between asking and the answer; what that
// can explain is no skew.
func skew(clock Fact[time.Time], asked, answered time.Time) Fact[time.Duration] {
	t, err := clock.Get()
	if err != nil {
		return Unknown[time.Duration](err)
	}
	switch {
	case t.Add(time.Second).Before(asked):
		return Known(t.Add(time.Second).Sub(asked))
	case t.After(answered):
		return Known(t.Sub(answered))
	}
	return Known(time.Duration(0))
}

// hexID reads an id of hexadecimal digits and dashes.
func hexID(out, what string, length int) (string, error) {
	id := strings.TrimSpace(out)
	if len(id) != length || strings.Trim(id, "0123456789abcdef-") != "" {
		return "", fmt.Errorf("not a %s: %q", what, printable(out))
	}
	return id, nil
}

func parseBoot(out string) (string, error) { return hexID(out, "boot id", 36) }

func parseMachine(out string) (string, error) { return hexID(out, "machine id", 32) }

// parseOS reads PRETTY_NAME of os-release.
func parseOS(out string) (string, error) {
	for line := range strings.Lines(out) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME=")
		if !ok {
			continue
		}
		if name := printable(strings.Trim(v, `"'`)); name != "" {
			return name, nil
		}
	}
	return "", errors.New("os-release has no PRETTY_NAME")
}

func parseArch(out string) (string, error) {
	arch := strings.TrimSpace(out)
	if !word(arch, 32) {
		return "", fmt.Errorf("not an architecture: %q", printable(out))
	}
	return arch, nil
}

// parseAudit keeps dpkg's own words. Anything it prints is a package left half done; silence with a failure is no answer.
func parseAudit(res command.Result) (string, error) {
	if err := sound(res); err != nil {
		return "", err
	}
	out := printable(string(res.Stdout))
	if res.Exit != 0 && out == "" {
		return "", succeeded(res)
	}
	return out, nil
}

func parseRuntime(out string) (string, error) {
	id, ok := release.RuntimeID([]byte(out))
	if !ok {
		return "", errors.New("the installed package lists no VM runtime")
	}
	return id, nil
}

// parseRuns reads the id of the unfinished run. No file: there is none.
func parseRuns(res command.Result) (string, error) {
	if res.Exit == 1 && strings.Contains(string(res.Stderr), "No such file") {
		return "", nil
	}
	if err := succeeded(res); err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(res.Stdout))
	if id != "" && !word(id, 200) {
		return "", fmt.Errorf("not a run: %q", printable(id))
	}
	return id, nil
}
