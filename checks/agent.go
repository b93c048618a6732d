package checks

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// parseAgent reads the gate's answer. A closed gate may answer with an exit status of its own.
func parseAgent(res command.Result) (gate.Status, error) {
	var s gate.Status
	if res.Exit == 127 || (res.Exit == 1 && strings.Contains(string(res.Stderr), "kibo-agent: command not found")) {
		return s, ErrNoAgent
	}
	if res.Exit != 0 && res.Exit != 4 {
		return s, succeeded(res)
	}
	if err := json.Unmarshal(res.Stdout, &s); err != nil {
		return gate.Status{}, fmt.Errorf("cannot read the agent's answer: %w%s", err, said(command.Result{Stderr: res.Stderr}))
	}
	if s.Version == "" {
		return gate.Status{}, fmt.Errorf("the agent's answer has no version: %q", printable(string(res.Stdout)))
	}
	s.Version, s.Code, s.Reason = printable(s.Version), printable(s.Code), printable(s.Reason)
	for i := range s.Layers {
		s.Layers[i].Name, s.Layers[i].Reason = printable(s.Layers[i].Name), printable(s.Layers[i].Reason)
	}
	for i := range s.Inhibitors {
		in := &s.Inhibitors[i]
		in.What, in.Who, in.Why, in.Mode = printable(in.What), printable(in.Who), printable(in.Why), printable(in.Mode)
	}
	return s, nil
}
