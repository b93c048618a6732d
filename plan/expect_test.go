package plan

import (
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// TestJudgeAction: what the outcome of a command means, by what was expected of it.
// Cases: stage-noexec (exit 126 is no failed check), stage-left-over (an old tree does not pass for the target), sftp-rename-over
// (a directory that is there is not written over).
// proves K6
// proves K10
// proves K12
func TestJudgeAction(t *testing.T) {
	sum := strings.Repeat("a", 64)
	result := func(exit int, out, err string) command.Result {
		return command.Result{Exit: exit, Stdout: []byte(out), Stderr: []byte(err)}
	}
	for name, tc := range map[string]struct {
		expect  string
		res     command.Result
		ok      bool
		blocked bool
		says    string
	}{
		"plain":              {"", result(0, "", ""), true, false, "exit status 0"},
		"failed":             {"", result(3, "noise\n", "first\nthe reason\n"), false, false, "exit status 3: the reason"},
		"checksum":           {"sha256:" + sum, result(0, sum+"  x.deb\n", ""), true, false, "agrees"},
		"other checksum":     {"sha256:" + sum, result(0, strings.Repeat("b", 64)+"  x.deb\n", ""), false, false, "checksum on the host"},
		"no checksum":        {"sha256:" + sum, result(0, "", ""), false, false, "checksum on the host"},
		"version":            {"version:kibotos-node:0.1.4", result(0, `{"name":"kibotos-node","version":"v0.1.4"}`, ""), true, false, "0.1.4"},
		"old tree":           {"version:kibotos-node:0.1.4", result(0, `{"name":"kibotos-node","version":"0.1.2"}`, ""), false, true, "0.1.2"},
		"another program":    {"version:kibotos-node:0.1.4", result(0, `{"name":"kibotos-ctrl","version":"0.1.4"}`, ""), false, true, "kibotos-ctrl"},
		"no version":         {"version:kibotos-node:0.1.4", result(0, "Welcome\n", ""), false, false, "cannot read"},
		"noexec":             {"version:kibotos-node:0.1.4", result(126, "", "sh: Permission denied\n"), false, false, "noexec"},
		"directory is new":   {"new-dir", result(0, "", ""), true, false, ""},
		"directory is there": {"new-dir", result(1, "", "mkdir: File exists\n"), false, false, "nothing is unpacked over it"},
		"report":             {"report:node", result(0, "[ok] configuration: read\nsummary: 0 blocker(s)\n", ""), true, false, "no blocker"},
		"blocker":            {"report:node", result(1, "[blocker] guest: ws-1 is too old\nsummary: 1 blocker(s)\n", ""), false, true, "ws-1"},
		"silence":            {"report:node", result(1, "", ""), false, true, ""},
		"noexec is no word":  {"report:node", result(126, "", "Permission denied\n"), false, true, "cannot be executed"},
		"migration planned":  {"report-migrate:ctrl", result(0, "[action] database: run kibotos-ctrl migrate --config X after replacing files, before starting\nsummary: 0 blocker(s)\n", ""), true, false, "migration is due"},
		"migration unasked":  {"report:ctrl", result(0, "[action] database: run kibotos-ctrl migrate --config X after replacing files, before starting\nsummary: 0 blocker(s)\n", ""), false, true, "plan again"},
	} {
		a := Action{Expect: tc.expect, Command: command.Command{Argv: []string{"/stage/next/usr/bin/program", "/stage/dir"}}}
		got := a.Judge(tc.res)
		if got.OK != tc.ok || got.Blocked != tc.blocked || !strings.Contains(got.Why, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
