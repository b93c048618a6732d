package sshconn

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
)

// Bounds of asking ssh: a Match exec or a name server may hang.
const (
	askLimit   = 20 * time.Second
	askAtATime = 8
)

// settings asks once for what is the same question: a jump host is asked about for every host behind it.
func (r *Resolver) settings(ctx context.Context, w words, address string) (settings, error) {
	key := fmt.Sprintf("%q", []any{address, w.config, w.set})
	r.mu.Lock()
	known, ok := r.asked[key]
	if r.busy == nil {
		r.busy = remote.NewSlots(askAtATime)
	}
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	answer, err, _ := r.flight.Do(key, func() (any, error) {
		release, err := r.busy.Take(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		if r.SSH == "" {
			return r.library(ctx, w, address)
		}
		return r.binary(ctx, w, address)
	})
	if err != nil {
		return nil, err
	}
	s, _ := answer.(settings)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]settings{}
	}
	r.asked[key] = s
	return s, nil
}

// settings are what ssh_config says about one host, keys in lower case.
type settings map[string][]string

func (s settings) one(key string) string {
	if v := s[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// binary asks ssh itself.
func (r *Resolver) binary(ctx context.Context, w words, address string) (settings, error) {
	argv := []string{"-G"}
	if w.config != "" {
		argv = append(argv, "-F", w.config)
	}
	for _, s := range w.set {
		argv = append(argv, "-o", s.key+"="+quoteSetting(s))
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, r.SSH, append(argv, "--", address)...) //nolint:gosec // argv, and ssh only prints
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("ssh -G: %w: %s", err, oneLine(stderr.String()))
	}
	return parseDump(stdout.String()), nil
}

// quoteSetting keeps spaces in the value of settings that are a list of words for ssh.
func quoteSetting(s setting) string {
	if s.key == "identityfile" && strings.ContainsAny(s.value, " \t") {
		return `"` + s.value + `"`
	}
	return s.value
}

// parseDump reads what ssh -G prints: a key and its value on each line.
func parseDump(text string) settings {
	s := settings{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if ok {
			key = strings.ToLower(key)
			s[key] = append(s[key], value)
		}
	}
	return s
}
