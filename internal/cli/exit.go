package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/run"
)

// Exit codes: an interface. The only table of them.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitBlocked     = 3
	exitGate        = 4
	exitStopped     = 5
	exitUnreachable = 6
	exitHeld        = 7
	exitStale       = 8
	exitChanges     = 10
	exitInterrupted = 130
)

// exitRow is one code with its meaning, for help and docs.
type exitRow struct {
	code int
	text string
}

func exitTable() []exitRow {
	return []exitRow{
		{exitDone, "done, or nothing to do"},
		{exitError, "error"},
		{exitUsage, "usage or bad input"},
		{exitBlocked, "blocked by findings"},
		{exitGate, "gate closed or host held"},
		{exitStopped, "stopped part-way, resumable"},
		{exitUnreachable, "some hosts unreachable"},
		{exitHeld, "another run holds the fleet"},
		{exitStale, "plan is stale"},
		{exitChanges, "plan --detailed-exitcode, and there are changes"},
		{exitInterrupted, "interrupted, resumable"},
	}
}

func exitHelp() string {
	out := "Exit codes:\n"
	for _, r := range exitTable() {
		out += fmt.Sprintf("  %3d  %s\n", r.code, r.text)
	}
	return out
}

// exit is an error with the code to end with and the next thing to type.
type exit struct {
	code  int
	err   error
	next  string
	quiet bool // said already
}

func (e *exit) Error() string { return e.err.Error() }

func (e *exit) Unwrap() error { return e.err }

func fail(code int, next string, format string, a ...any) error {
	return &exit{code: code, err: fmt.Errorf(format, a...), next: next}
}

// codeOf finds the exit code of an error.
func codeOf(err error) int {
	var e *exit
	var r *remote.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, context.Canceled): // the operator asked twice
		return exitInterrupted
	case errors.Is(err, run.ErrHeld):
		return exitHeld
	case errors.As(err, &r):
		return remoteCode(r.Kind)
	}
	return exitError
}

func remoteCode(k remote.Kind) int {
	switch k {
	case remote.Unreachable, remote.Auth, remote.HostKey, remote.Lost:
		return exitUnreachable
	default:
		return exitError
	}
}

// classCode maps how a walk ended to an exit code.
func classCode(c run.Class) int {
	switch c {
	case run.Done:
		return exitDone
	case run.Blocked:
		return exitBlocked
	case run.GateClosed:
		return exitGate
	case run.Unreachable:
		return exitUnreachable
	case run.Interrupted:
		return exitInterrupted
	}
	return exitStopped
}
