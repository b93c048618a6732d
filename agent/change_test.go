package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

func TestJobKeyOf(t *testing.T) {
	for cgroup, want := range map[string]string{
		"0::/system.slice/kibo-job-k.1.service\n":                                         "k.1",
		"0::/system.slice/kibo-job-k.service/sub\n":                                       "k",
		"12:cpu:/x\n1:name=systemd:/system.slice/kibo-job-k.service\n":                    "k",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/kibo-job-k.service\n": "",
		"0::/user.slice/system.slice/kibo-job-k.service\n":                                "",
		"0::/system.slice/kibo-job-.service\n":                                            "",
		"0::/system.slice/other.service\n":                                                "",
		"rubbish":                                                                         "",
	} {
		if got := jobKeyOf(cgroup); got != want {
			t.Errorf("%q: %q, want %q", cgroup, got, want)
		}
	}
}

// guard asks on behalf of apt-get below a shell, or of a job.
func guard(t *testing.T, j Jobs, cgroup string) Guard {
	t.Helper()
	return Guard{Jobs: j, Procs: fakeProc(t, cgroup, "/", []string{"dpkg", "-i"}, []string{"apt-get", "install"}, []string{"bash"}), PID: 30,
		Sum: func(path string) (string, error) { return strings.Repeat(path[1:2], 64), nil }}
}

func install(name, version, deb string) Change {
	c := newChange()
	c.Install[name], c.Debs = version, []string{deb}
	return c
}

func refusal(err error) string {
	if err == nil {
		return ""
	}
	return gate.Closed(err).Code
}

// proves Z1: what a hook lets through is exactly what the window permits.
func TestGuard(t *testing.T) {
	a := strings.Repeat("a", 64)
	both := install("kibotos-node", "2", "/a.deb")
	both.Remove["kibotos-gw"] = "1"
	for name, tc := range map[string]struct {
		file *gate.AllowFile
		c    Change
		code string
	}{
		"nothing gated, no window": {nil, newChange(), ""},
		"no window":                {nil, install("kibotos-node", "2", "/a.deb"), gate.CodeMissing},
		"any":                      {&gate.AllowFile{}, both, ""},
		"other operation":          {&gate.AllowFile{Operations: []string{gate.OpInstall}}, both, gate.CodeOtherOperation},
		"other version":            {&gate.AllowFile{Packages: map[string]string{"kibotos-node": "1"}}, install("kibotos-node", "2", "/a.deb"), gate.CodeOtherVersion},
		"checksum":                 {&gate.AllowFile{SHA256: []string{a}}, install("kibotos-node", "2", "/a.deb"), ""},
		"other checksum":           {&gate.AllowFile{SHA256: []string{a}}, install("kibotos-node", "2", "/b.deb"), gate.CodeOtherSHA256},
		"unclear":                  {&gate.AllowFile{}, Change{Unclear: []string{"odd"}}, gate.CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := newJobs(t)
			if tc.file != nil {
				open(t, j, *tc.file)
			}
			if got := refusal(guard(t, j, "0::/\n").Permit(tc.c)); got != tc.code {
				t.Errorf("got %q, want %q", got, tc.code)
			}
		})
	}
}

// proves Z3: a single-use window is one package manager's, for all of its questions, and nobody else's.
func TestGuardSingleUse(t *testing.T) {
	j, _ := newJobs(t)
	open(t, j, gate.AllowFile{SingleUse: true, Packages: map[string]string{"kibotos-node": "2"}})
	c := install("kibotos-node", "2", "/a.deb")
	first := guard(t, j, "0::/\n")
	for range 3 { // apt's hook, then dpkg's for each dpkg
		if err := first.Permit(c); err != nil {
			t.Fatal(err)
		}
	}
	if got := refusal(first.Permit(install("kibotos-node", "3", "/a.deb"))); got != gate.CodeMissing {
		t.Errorf("the same one may do something else: %q", got)
	}
	other := guard(t, j, "0::/\n")
	write(t, filepath.Join(other.Procs.Root, "sys/kernel/random/boot_id"), "boot-2\n", 0o644)
	if got := refusal(other.Permit(c)); got != gate.CodeMissing {
		t.Errorf("another process with the same number may, too: %q", got)
	}
}

// proves Z3: inside a job, the window that the job was permitted by counts, also after it has ended or was
// consumed, and only for what the job was to do.
func TestGuardInsideJob(t *testing.T) {
	j, u := newJobs(t)
	open(t, j, gate.AllowFile{SingleUse: true})
	o := Order{Key: "k", Argv: []string{"sleep", "0.5"}, Request: gate.Request{Operation: gate.OpInstall,
		Packages: map[string]string{"kibotos-node": "2"}, SHA256: []string{strings.Repeat("a", 64)}}}
	if _, err := j.Run(t.Context(), o, 1); err != nil {
		t.Fatal(err)
	}
	g := guard(t, j, "0::/system.slice/kibo-job-k.service\n")
	remove := newChange()
	remove.Remove["kibotos-node"] = "2"
	for name, tc := range map[string]struct {
		c    Change
		code string
	}{
		"its own":         {install("kibotos-node", "2", "/a.deb"), ""},
		"other file":      {install("kibotos-node", "2", "/b.deb"), gate.CodeOtherSHA256},
		"other version":   {install("kibotos-node", "3", "/a.deb"), gate.CodeOtherVersion},
		"other package":   {install("kibotos-gw", "2", "/a.deb"), gate.CodeOtherPackage},
		"other operation": {remove, gate.CodeOtherOperation},
	} {
		if got := refusal(g.Permit(tc.c)); got != tc.code {
			t.Errorf("%s: got %q, want %q", name, got, tc.code)
		}
	}
	if got := refusal(guard(t, j, "0::/\n").Permit(install("kibotos-node", "2", "/a.deb"))); got != gate.CodeMissing {
		t.Errorf("outside of the job: %q", got)
	}
	u.all.Wait()
	if got := refusal(g.Permit(install("kibotos-node", "2", "/a.deb"))); got == "" {
		t.Error("what a job left behind may still change packages")
	}
}
