package checks

import (
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// factRow is one fact: which commands yield it and how their output is read.
type factRow struct {
	fact  string // as in Facts
	title string
	rule  string
	asks  func(w Want) []ask
}

// factRows is the table of facts. The order is that of the exec.
func factRows() []factRow {
	return append(hostRows(), partRows()...)
}

func hostRows() []factRow {
	return []factRow{
		{"Clock", "the host's clock", "Z2", always(asking(func(f *Facts) *Fact[time.Time] { return &f.Clock },
			text(parseClock), command.Login, "date", "-u", "+%s"))},
		{"Boot", "boot id", "", always(asking(func(f *Facts) *Fact[string] { return &f.Boot },
			text(parseBoot), command.Login, "cat", "/proc/sys/kernel/random/boot_id"))},
		{"Machine", "machine id", "", always(asking(func(f *Facts) *Fact[string] { return &f.Machine },
			text(parseMachine), command.Login, "cat", "/etc/machine-id"))},
		{"OS", "operating system", "", always(asking(func(f *Facts) *Fact[string] { return &f.OS },
			text(parseOS), command.Login, "cat", "/etc/os-release"))},
		{"Arch", "dpkg's architecture", "K6", always(asking(func(f *Facts) *Fact[string] { return &f.Arch },
			text(parseArch), command.Login, "dpkg", "--print-architecture"))},
		{"Sudo", "commands can run as root", "", always(asking(func(f *Facts) *Fact[bool] { return &f.Sudo },
			text(func(string) (bool, error) { return true, nil }), command.Root, "true"))},
		{"DpkgAudit", "packages that dpkg left half done", "", always(asking(func(f *Facts) *Fact[string] { return &f.DpkgAudit },
			parseAudit, command.Login, "dpkg", "--audit"))},
		{"Packages", "installed packages", "", always(asking(func(f *Facts) *Fact[[]Package] { return &f.Packages },
			parsePackages, command.Login, append([]string{"dpkg-query", "-W", "-f", packageFormat}, packages()...)...))},
		{"Agent", "the gate's answer", "Z8", always(asking(func(f *Facts) *Fact[gate.Status] { return &f.Agent },
			parseAgent, command.Root, agentPackage, "status", "--output", "json"))},
		{"Disk", "free space", "", func(w Want) []ask {
			return []ask{asking(func(f *Facts) *Fact[[]Disk] { return &f.Disk }, parseDisks, command.Login,
				append([]string{"df", "-B1", "--output=target,avail,itotal,iavail"}, w.diskPaths()...)...)}
		}},
		{"Staged", "the target's staging directory", "K10", func(w Want) []ask {
			if w.StageDir == "" {
				return nil
			}
			return []ask{asking(func(f *Facts) *Fact[Staged] { return &f.Staged }, parseStaged(w.StageDir), command.Root,
				"sh", "-c", stageScript, StageScriptName, w.StageDir)}
		}},
		{"Runs", "the unfinished run", "", func(w Want) []ask {
			if !w.has(release.Ctrl) {
				return nil
			}
			return []ask{asking(func(f *Facts) *Fact[string] { return &f.Runs }, parseRuns, command.Login, "cat", w.currentRun())}
		}},
	}
}

func partRows() []factRow {
	return []factRow{
		{"Parts.Version", "version of the installed program", "K6", perPart(func(w Want, i int, p release.Part) []ask {
			return []ask{askBuild(i, p, w.versionArgv(p))}
		})},
		{"Parts.Unit", "state of the service", "K55", perPart(func(_ Want, i int, p release.Part) []ask {
			return []ask{asking(func(f *Facts) *Fact[Unit] { return &f.Parts[i].Unit }, text(parseUnit), command.Root,
				"sh", "-c", unitScript, UnitScriptName, p.Unit())}
		})},
		{"Parts.Runtime", "installed VM runtime", "K32", perPart(func(_ Want, i int, p release.Part) []ask {
			if p != release.Node {
				return nil
			}
			return []ask{asking(func(f *Facts) *Fact[string] { return &f.Parts[i].Runtime }, text(parseRuntime), command.Login,
				"cat", "/var/lib/dpkg/info/"+p.Package()+".md5sums")}
		})},
		{"VMMs", "running VMs", "K41", func(w Want) []ask {
			if !w.has(release.Node) {
				return nil
			}
			return []ask{asking(func(f *Facts) *Fact[[]VMM] { return &f.VMMs }, text(parseVMMs), command.Login,
				"systemctl", "show", "-p", "Id,ActiveState,MainPID,ExecMainStartTimestampMonotonic", w.vmmUnits())}
		}},
	}
}

func always(a ask) func(Want) []ask {
	return func(Want) []ask { return []ask{a} }
}

func perPart(asks func(w Want, i int, p release.Part) []ask) func(Want) []ask {
	return func(w Want) []ask {
		var out []ask
		for i, p := range w.Parts {
			out = append(out, asks(w, i, p)...)
		}
		return out
	}
}

// FactRow is one line of the table of facts, for the documentation.
type FactRow struct {
	Fact     string // the field of Facts
	Title    string
	Rule     string // of the contract, where one asks for it
	Commands []command.Command
}

// FactTable is the table of facts with the commands for one host.
func FactTable(w Want) []FactRow {
	var out []FactRow
	for _, row := range factRows() {
		r := FactRow{Fact: row.fact, Title: row.title, Rule: row.rule}
		for _, a := range row.asks(w) {
			r.Commands = append(r.Commands, a.command)
		}
		out = append(out, r)
	}
	return out
}
