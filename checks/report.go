package checks

import (
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// Report is what a target program's check-upgrade or check-maintenance said, and what follows from it.
type Report struct {
	Part         release.Part `json:"part"`
	Preview      bool         `json:"preview"` // made while the service runs
	Exit         int          `json:"exit"`
	Findings     []Finding    `json:"findings"`             // Host is the caller's to fill in
	Blockers     []string     `json:"blockers,omitempty"`   // texts of the findings that block
	Unfinished   []string     `json:"unfinished,omitempty"` // objects of ctrl that are not finished, at that moment (K22)
	MigrationDue bool         `json:"migrationDue"`         // migrate between replacing the files and starting (K27)
	Raw          []byte       `json:"raw"`                  // both outputs as they came: not safe to print (K29)

	summary int  // blockers by its own summary; -1 without one
	listed  int  // blockers that it lists
	unclear bool // some line could not be classified
	known   bool // some line could be
}

// readWhole is the remedy where only the report itself can tell.
const readWhole = "read the whole report: kibo-rollout check -v"

// Blocked reports whether the report stops the upgrade.
func (r Report) Blocked() bool { return len(r.Blockers) > 0 }

// Readable reports whether the report was understood to the last line, so that what it does not list is not there.
func (r Report) Readable() bool {
	return !r.unclear && r.summary >= 0 && r.summary == r.listed && (r.Exit == 0) == (r.listed == 0)
}

// ParseReport reads a report. preview: it was made while the service runs; then ctrl's unfinished objects are a snapshot and
// do not block (K22). After the stop exit status 0 is the only pass (K23). The form of a report is not promised, so whatever
// is not understood blocks unless the program itself says by exit status 0 that nothing does (K29).
func ParseReport(part release.Part, preview bool, res command.Result) Report {
	r := Report{
		Part: part, Preview: preview, Exit: res.Exit, summary: -1,
		Raw: append(append([]byte{}, res.Stdout...), res.Stderr...),
	}
	if err := sound(res); err != nil {
		r.unclear = true
		r.block("the report is not whole: "+err.Error(), readWhole)
		return r
	}
	if r.notRun(res) {
		return r
	}
	for line := range strings.Lines(string(res.Stdout)) {
		if line = strings.TrimSpace(line); line != "" {
			r.line(line)
		}
	}
	r.conclude(res)
	return r
}

// notRun explains exit statuses that come from the shell or from a signal and not from the check.
func (r *Report) notRun(res command.Result) bool {
	switch {
	case res.Exit == 126:
		r.block("the target program cannot be executed"+said(res),
			"mount the staging directory's file system without noexec, or set kibo_stage_dir to one that is")
	case res.Exit == 127:
		r.block("the target program is not there"+said(res), "kibo-rollout check, which stages it again")
	case res.Exit > 128:
		r.block(fmt.Sprintf("the check was ended by signal %d%s", res.Exit-128, said(res)), "find out what ended it, then kibo-rollout check")
	default:
		return false
	}
	r.unclear = true
	return true
}

// line takes in one line "[LEVEL] SECTION: TEXT", or the summary.
func (r *Report) line(line string) {
	var n int
	if k, err := fmt.Sscanf(line, "summary: %d blocker", &n); err == nil && k == 1 && n >= 0 && r.summary < 0 {
		r.summary = n
		return
	}
	level, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	section, text, named := strings.Cut(rest, ": ")
	if !ok || !named || line[0] != '[' || !word(level, 32) || r.summary >= 0 {
		r.unclassified(line)
		return
	}
	said := printable(section + ": " + text)
	was := r.known
	r.known = true
	switch {
	case level == "blocker":
		r.blocker(section, text)
	case suspicious(line):
		r.known = was
		r.unclassified(line)
	case level == "ok":
		r.find(Pass, said, "")
	case level == "notice", level == "after-migration":
		r.find(Warn, said, "")
	case level == "action" && r.Part == release.Ctrl && strings.Contains(text, "kibotos-ctrl migrate"):
		r.MigrationDue = true
		r.find(Warn, said, "nothing: the walk runs the migration between replacing the files and starting")
	default:
		r.known = was
		r.unclassified(line)
	}
}

func (r *Report) blocker(section, text string) {
	r.listed++
	said := printable(section + ": " + text)
	if r.Part == release.Ctrl && strings.HasPrefix(strings.ToLower(section), "unfinished") {
		r.Unfinished = append(r.Unfinished, printable(text))
		if r.Preview {
			r.find(Warn, said+" (a snapshot, which does not count before the stop)", "")
			return
		}
	}
	r.block(said, sectionRemedy(r.Part, section))
}

// unclassified keeps a line that was not understood. Exit status 0 promises that it is no blocker; a line about the migration
// is never let through, since running it or not cannot be left to chance.
func (r *Report) unclassified(line string) {
	r.unclear = true
	said := "a line of the report was not understood: " + printable(line)
	if r.Exit != 0 || strings.Contains(line, "migrate") || strings.HasPrefix(line, "[action]") {
		r.block(said, readWhole)
		return
	}
	r.find(Warn, said, readWhole)
}

// conclude holds the lines against the summary and the exit status.
func (r *Report) conclude(res command.Result) {
	switch {
	case len(strings.TrimSpace(string(res.Stdout))) == 0:
		r.unclear = true
		r.block(fmt.Sprintf("there is no report (exit status %d%s)", r.Exit, said(res)), readWhole)
	case r.Exit == 0 && r.summary > 0 && r.listed == 0:
		r.block(fmt.Sprintf("the summary counts %d blockers, though none is listed and the exit status is 0", r.summary), readWhole)
	case r.Exit == 0 && r.listed > 0 && !r.Blocked():
		r.block("blockers are listed though the exit status is 0", readWhole)
	case r.Exit == 0 && r.summary < 0 && !r.known:
		r.block("this is not a report, though the exit status is 0"+said(res), readWhole)
	case r.Exit == 0 && r.summary < 0:
		r.find(Warn, "the report has no summary", readWhole)
	case r.Exit != 0 && r.summary < 0:
		r.block(fmt.Sprintf("the report has no summary: it was cut off (exit status %d%s)", r.Exit, said(res)), readWhole)
	case r.Exit != 0 && r.listed == 0:
		r.block(fmt.Sprintf("exit status %d without a blocker in the report%s", r.Exit, said(res)), readWhole)
	case r.summary != r.listed && r.Exit != 0:
		r.block(fmt.Sprintf("the report lists %d blockers, its summary counts %d", r.listed, r.summary), readWhole)
	}
}

func (r *Report) block(text, remedy string) {
	r.Blockers = append(r.Blockers, text)
	r.find(Block, text, remedy)
}

func (r *Report) find(level Level, text, remedy string) {
	id := "offline-check"
	if r.Preview {
		id = "preview"
	}
	r.Findings = append(r.Findings, Finding{Check: id, Part: string(r.Part), Level: level, Text: text, Remedy: remedy})
}

// sectionRemedy says what an operator can do about a blocker of a section.
func sectionRemedy(p release.Part, section string) string {
	section = strings.ToLower(section)
	if p == release.Ctrl && strings.HasPrefix(section, "unfinished") {
		return "start the installed ctrl again, wait until kibo node list shows no commands and transfers, then kibo-rollout resume"
	}
	switch section {
	case "configuration":
		return "write the configuration in the target's form to a file of yours and name it in kibo_next_config, then kibo-rollout check"
	case "database":
		return "bring the database to a state that the target supports with the installed version, then kibo-rollout check"
	case "guest", "runtime":
		return "stop the named Workspaces by the normal stop, not by killing VMs, then kibo-rollout check"
	case "lock", "processes":
		return "find out which process is left with systemctl status kibotos-node, then kibo-rollout resume"
	}
	return "deal with the reason given, then kibo-rollout check"
}
