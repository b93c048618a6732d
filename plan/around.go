package plan

import (
	"path"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// prepareRows are what every host needs before anything is stopped: the agent, and the target's files (K10).
func prepareRows() []row {
	return []row{
		{
			kind: "agent", title: "install kibo-agent", effect: command.Changes, rule: "Z1 Z8",
			complete: "kibo-agent answers", applies: func(s site) bool { return s.agentDeb != nil }, fill: fillAgent,
		},
		stageRow(),
	}
}

func stageRow() row {
	return row{
		kind: "stage", title: "stage the target's packages", effect: command.Stages, rule: "K6 K10 K12",
		complete: "checksums agree on the host; the unpacked programs name the target version", fill: fillStage,
	}
}

// previewRows ask the target programs whether they can take over, while everything still runs (K20-K22).
func previewRows() []row {
	return []row{{
		kind: "preview", title: "preview with the target program", effect: command.Reads, rule: "K13 K20 K21 K22",
		complete: "no blocker; unfinished objects at ctrl are only a snapshot before its stop",
		applies:  func(s site) bool { return !s.part.Gateway() },
		fill: func(s site, st *Step) {
			st.Limit = s.limit(opPreview, 5*time.Minute)
			st.Skip = anyOf(s.installed(), s.stopped())
			st.Act = []Action{{Verb: Exec, Host: s.host.Name, Expect: "preview:" + string(s.part), Command: s.preview()}}
			st.OnFail = "nothing was stopped"
		},
	}}
}

func (s site) preview() command.Command {
	as := command.Root
	if s.part == release.Ctrl {
		as = "kibotos-ctrl"
	}
	return command.Command{Argv: s.argv(opPreview), As: as, Effect: command.Reads, Timeout: s.limit(opPreview, 5*time.Minute)}
}

// closeRows end a block, whatever happened in it.
func closeRows() []row {
	return []row{{
		kind: "close", title: "close the gate", effect: command.Changes, rule: "Z4",
		complete: "the allow-file of this change is gone", applies: site.managed,
		fill: func(s site, st *Step) {
			st.Skip = &Cond{Kind: CondNoWindow, Host: s.host.Name, Value: s.window()}
			st.Act = []Action{s.close()}
			st.Done = st.Skip
			st.OnFail = "the window ends by itself"
		},
	}}
}

// readyRows is the completion of step 2: no node is stopped before every node is back at ctrl (K34).
func readyRows() []row {
	return []row{{
		kind: "nodes-ready", title: "wait until every node is back at ctrl", effect: command.Reads, rule: "K34",
		complete: "every node is READY again in the node list (a drain of somebody else stays)",
		fill:     func(s site, st *Step) { st.Limit = s.limit("ready", 5*time.Minute) },
	}}
}

// verifyRows read back from every host that the upgrade is true.
func verifyRows() []row {
	return []row{{
		kind: "verify", title: "read back versions, state and VMs", effect: command.Reads, rule: "K41",
		complete: "every part is installed at the target and running; what became of each VMM is told",
		fill: func(s site, st *Step) {
			st.ID = s.host.Name + "/verify"
			var of []Cond
			for _, d := range s.debs {
				p := s
				p.part, p.deb = d.Part, d
				p.idle = s.idles[d.Part]
				of = append(of, p.installed(), p.running())
				if d.Part == release.Node && !p.idle {
					of = append(of, p.released(), p.nodeIs("READY|DRAINING|DRAINED"))
				}
			}
			st.Done = all(of...)
			st.OnFail = "what was read differs from the target; nothing was changed by reading"
		},
	}}
}

// cleanRows remove the staging directory, after success and after clean failure alike (K11).
func cleanRows() []row {
	return []row{{
		kind: "clean", title: "remove the staging directory", effect: command.Stages, rule: "K11",
		complete: "the directory is gone",
		fill: func(s site, st *Step) {
			st.ID = s.host.Name + "/clean"
			st.Skip = &Cond{Kind: CondUnstaged, Host: s.host.Name, Value: s.stage}
			st.Act = []Action{s.root(command.Stages, "", "rm", "-rf", "--", s.stage, s.partial())}
			st.Done = st.Skip
			st.OnFail = s.stage + " is left on " + s.host.Name
		},
	}}
}

func (s site) root(effect command.Effect, expect string, argv ...string) Action {
	return Action{Verb: Exec, Host: s.host.Name, Expect: expect, Command: command.Command{Argv: argv, As: command.Root, Effect: effect}}
}

// arrival is where an upload lands in the login user's home before root takes it over.
func (s site) arrival(d release.Deb) string { return ".kibo-rollout-" + s.run + "-" + d.File }

// partial is where this run stages before everything is judged: named after the run, so that it is nobody else's.
func (s site) partial() string { return s.stage + ".part-" + s.run }

// fillStage uploads each package to the login user's home, lets root copy it into a directory that nobody else can write
// to, judges the copy there, and gives the directory its name last: what has the name is whole, and what was checked is what
// gets unpacked and installed. Nothing is ever unpacked over an old tree (K10).
func fillStage(s site, st *Step) {
	st.Limit = s.limit("stage", 15*time.Minute)
	st.ID = s.host.Name + "/stage"
	st.Skip = &Cond{Kind: CondStaged, Host: s.host.Name, Value: s.stage}
	above := path.Dir(s.stage)
	st.Act = []Action{
		s.root(command.Stages, "", "mkdir", "-p", "-m", "0755", path.Dir(above), above),
		s.root(command.Stages, "", "rm", "-rf", "--", s.partial()),
		s.root(command.Stages, "new-dir", "mkdir", "-m", "0755", s.partial()),
	}
	for i := range s.debs {
		d := s.debs[i]
		st.Act = append(st.Act, Action{Verb: Upload, Host: s.host.Name, Deb: &d, Path: s.arrival(d)})
	}
	for _, d := range s.debs {
		deb, next := path.Join(s.partial(), d.File), path.Join(s.partial(), "next-"+string(d.Part))
		st.Act = append(st.Act, s.takeOver(d, deb)...)
		st.Act = append(st.Act,
			s.root(command.Stages, "", "dpkg-deb", "-x", deb, next),
			s.root(command.Reads, "version:"+d.Package+":"+s.version, next+d.Part.Binary(), "version", "--json"),
		)
	}
	st.Act = append(st.Act, s.root(command.Stages, "", "touch", path.Join(s.partial(), "complete")))
	if s.cleanOld {
		st.Act = append(st.Act, s.root(command.Stages, "", "rm", "-rf", "--", s.stage))
	}
	st.Act = append(st.Act, s.root(command.Stages, "new-dir", "mv", "-T", "--", s.partial(), s.stage))
	st.Done = st.Skip
	st.Back = []Step{{
		ID: s.host.Name + "/unstage", Title: "remove what was staged", Host: s.host.Name, Effect: command.Stages, Rule: "K11",
		Limit: time.Minute, Act: []Action{s.root(command.Stages, "", "rm", "-rf", "--", s.partial())},
	}}
	st.OnFail = "nothing but " + s.partial() + " was written on " + s.host.Name
}

// takeOver copies an uploaded file to a root-owned place and verifies the copy.
func (s site) takeOver(d release.Deb, to string) []Action {
	remove := Action{Verb: Exec, Host: s.host.Name, Command: command.Command{Argv: []string{"rm", "-f", s.arrival(d)}, Effect: command.Stages}}
	return []Action{
		s.root(command.Stages, "", "install", "-o", "root", "-g", "root", "-m", "0644", s.arrival(d), to),
		remove,
		s.root(command.Reads, "sha256:"+d.SHA256, "sha256sum", to),
	}
}

// fillAgent installs the agent by plain apt-get: there is no gate yet that could be asked.
func fillAgent(s site, st *Step) {
	d := *s.agentDeb
	dir := path.Dir(s.stage)
	to := path.Join(dir, d.File)
	st.ID = s.host.Name + "/agent"
	st.Limit = s.limit("agent", 10*time.Minute)
	st.Title = "install kibo-agent " + d.Version
	st.Skip = &Cond{Kind: CondAgent, Host: s.host.Name}
	st.Act = []Action{
		s.root(command.Changes, "", "mkdir", "-p", "-m", "0755", path.Dir(dir), dir),
		{Verb: Upload, Host: s.host.Name, Deb: &d, Path: s.arrival(d)},
	}
	st.Act = append(st.Act, s.takeOver(d, to)...)
	install := append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}, aptInstall()...)
	st.Act = append(st.Act,
		s.root(command.Changes, "", append(install, to)...),
		s.root(command.Changes, "", "rm", "-f", to),
	)
	st.Done = st.Skip
	st.OnFail = "the parts of " + s.host.Name + " were not touched"
}
