package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// proves Z7: a block lock on shutdown holds the host, a delay lock or another kind does not, and nobody is kept
// from starting a service again.
func TestInhibited(t *testing.T) {
	lock := func(what, mode, who string) []gate.Inhibitor {
		return []gate.Inhibitor{{What: what, Mode: mode, Who: who, Why: "b\x1backup"}}
	}
	for name, tc := range map[string]struct {
		locks []gate.Inhibitor
		err   error
		op    string
		code  string
	}{
		"block":       {lock("sleep:shutdown", "block", "x"), nil, gate.OpStop, gate.CodeInhibited},
		"weak":        {lock("shutdown", "block-weak", "x"), nil, gate.OpStop, gate.CodeInhibited},
		"delay":       {lock("shutdown", "delay", "x"), nil, gate.OpStop, ""},
		"sleep only":  {lock("sleep", "block", "x"), nil, gate.OpStop, ""},
		"our own":     {lock("shutdown", "block", "kibo-agent"), nil, gate.OpStop, ""},
		"start again": {lock("shutdown", "block", "x"), nil, gate.OpStart, ""},
		"unknown":     {nil, errors.New("timeout"), gate.OpStop, gate.CodeInhibited},
		"no logind":   {nil, fmt.Errorf("cannot list: %w", errNoLogind), gate.OpStop, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := newJobs(t)
			j.Inhibitors = func(context.Context) ([]gate.Inhibitor, error) { return tc.locks, tc.err }
			open(t, j, gate.AllowFile{})
			o := order("k", "true")
			o.Request.Operation = tc.op
			if job := mustRun(t, j, o); job.Code != tc.code || strings.Contains(job.Reason, "\x1b") {
				t.Errorf("got %+v, want code %q", job, tc.code)
			}
		})
	}
}
