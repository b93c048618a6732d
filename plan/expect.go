package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Ruling is how the outcome of an action is judged.
type Ruling struct {
	OK      bool
	Blocked bool   // the target program said no: findings, not a failure of ours
	Why     string // evidence, or what went wrong; remote text in it is not yet safe to print
}

// notExecutable is a shell's exit status for a file that is there and cannot be executed.
const notExecutable = 126

// Judge rules on the outcome of an exec action by what the action expects.
func (a Action) Judge(res command.Result) Ruling {
	kind, rest, _ := strings.Cut(a.Expect, ":")
	switch kind {
	case "report", "report-migrate", "preview":
		return judgeReport(release.Part(rest), kind, res)
	case "new-dir":
		if res.Exit != 0 {
			return Ruling{Why: a.Command.Argv[len(a.Command.Argv)-1] + " is there already; nothing is unpacked over it (" + firstLine(res) + ")"}
		}
	}
	switch res.Exit {
	case 0:
	case notExecutable: // never a finding of the program: it did not run
		return Ruling{Why: fmt.Sprintf("%s cannot be run there (%s): is the file system mounted noexec? kibo_stage_dir names another place",
			a.Command.Argv[0], firstLine(res))}
	default:
		return Ruling{Why: fmt.Sprintf("exit status %d: %s", res.Exit, firstLine(res))}
	}
	switch kind {
	case "sha256":
		got, _, _ := strings.Cut(string(res.Stdout), " ")
		if got != rest {
			return Ruling{Why: fmt.Sprintf("checksum on the host is %.64q, not %s", got, rest)}
		}
		return Ruling{OK: true, Why: "sha256 agrees"}
	case "version":
		return judgeVersion(rest, res)
	}
	return Ruling{OK: true, Why: "exit status 0"}
}

func judgeReport(part release.Part, kind string, res command.Result) Ruling {
	rep := checks.ParseReport(part, kind == "preview", res)
	var why []string
	for _, f := range rep.Findings {
		if f.Level.Blocks() {
			why = append(why, f.Text)
		}
	}
	if len(why) > 0 {
		return Ruling{Blocked: true, Why: strings.Join(why, "; ")}
	}
	if rep.MigrationDue && kind == "report" {
		return Ruling{Blocked: true, Why: "a migration is due that the plan does not have: plan again"}
	}
	if rep.MigrationDue {
		return Ruling{OK: true, Why: "no blocker; a migration is due"}
	}
	return Ruling{OK: true, Why: "no blocker"}
}

// judgeVersion holds the unpacked program to its word (K6): the file name and the control data may lie.
func judgeVersion(want string, res command.Result) Ruling {
	pkg, version, _ := strings.Cut(want, ":")
	var got struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(res.Stdout, &got); err != nil {
		return Ruling{Why: "cannot read what `version --json` of the unpacked " + pkg + " printed: " + err.Error()}
	}
	if got.Name != pkg || strings.TrimPrefix(got.Version, "v") != version {
		return Ruling{Blocked: true, Why: fmt.Sprintf("the unpacked program says %.60q %.60q, not %s %s", got.Name, got.Version, pkg, version)}
	}
	return Ruling{OK: true, Why: pkg + " says " + version}
}

func firstLine(res command.Result) string {
	out := strings.TrimSpace(string(res.Stderr))
	if out == "" {
		out = strings.TrimSpace(string(res.Stdout))
	}
	if i := strings.LastIndexByte(out, '\n'); i >= 0 {
		out = out[i+1:] // the last line is the one that says why
	}
	if len(out) > 300 {
		out = out[:300] + "…"
	}
	return out
}
