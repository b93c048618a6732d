package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// byName reads control data out of file names, which only a test may do.
func byName(deb string) (Control, error) {
	name, rest, ok := strings.Cut(filepath.Base(deb), "_")
	version, _, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 {
		return Control{}, errNotDeb
	}
	return Control{Package: strings.TrimPrefix(name, "hidden-"), Version: version}, nil
}

func readFixture(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// proves Z8: apt's transactions are refused only for what they do to kibotos packages.
func TestReadAptHook(t *testing.T) {
	v3 := "VERSION 3\nAPT::Architecture=amd64\n\n"
	for name, tc := range map[string]struct{ in, words string }{
		"upgrade":        {readFixture(t, "apt-hook/stdin.upgrade.txt"), "install kibotos-node 1.2.4"},
		"downgrade":      {readFixture(t, "apt-hook/stdin.downgrade.txt"), "install kibotos-node 1.2.3"},
		"remove":         {readFixture(t, "apt-hook/stdin.remove.txt"), "remove kibotos-node 1.2.4"},
		"unrelated":      {readFixture(t, "apt-hook/stdin.unrelated.txt"), ""},
		"configure only": {readFixture(t, "apt-hook/stdin.configure-only.txt"), ""},
		"empty":          {readFixture(t, "apt-hook/stdin.empty.txt"), ""},
		"protocol 1": {readFixture(t, "apt-hook/stdin.version1.txt"),
			"apt speaks protocol 1 of its hooks, not 3, and is about to unpack /var/tmp/kibo/kibotos-node_1.2.4_amd64.deb"},
		"protocol 1, hidden": {"/tmp/hidden-kibotos-node_1_all.deb\n",
			"apt speaks protocol 1 of its hooks, not 3, and is about to unpack /tmp/hidden-kibotos-node_1_all.deb"},
		"protocol 1, unrelated": {"/tmp/hello_1_all.deb\n", ""},
		"protocol 1, unreadable": {"/tmp/hello\n",
			"apt speaks protocol 1 of its hooks, not 3, and what is in /tmp/hello cannot be told: is no .deb that dpkg-deb can read"},
		"protocol 2": {"VERSION 2\na=b\n\nkibotos-gw 1 < 2 /x.deb\nkibotos-gw 1 < 2 **CONFIGURE**\n",
			`apt speaks protocol 2 of its hooks, not 3, and says "kibotos-gw 1 < 2 /x.deb"`},
		"protocol 2, unrelated": {"VERSION 2\na=b\n\nhello 1 < 2 /x.deb\n", ""},
		"protocol 4":            {"VERSION 4\n\nkibotos-gw ?\n", `apt speaks protocol 4 of its hooks, not 3, and says "kibotos-gw ?"`},
		"first install":         {v3 + "kibotos-gw - - none < 1.0 amd64 none /x/a.deb\n", "install kibotos-gw 1.0"},
		"reinstall":             {v3 + "kibotos-gw 1.0 amd64 none = 1.0 amd64 none /x/a b.deb\n", "install kibotos-gw 1.0"},
		"several": {v3 + "hello 1 amd64 none < 2 amd64 none /h.deb\nkibotos-node 1 all none < 2 all none /n.deb\nkibotos-gw 1 all none > - - none **REMOVE**\n",
			"install kibotos-node 2, remove kibotos-gw 1"},
		"the agent itself":     {v3 + "kibo-agent 1 amd64 none > - - none **REMOVE**\n", ""},
		"too few fields":       {v3 + "kibotos-node 1 amd64\n", `cannot understand apt's line "kibotos-node 1 amd64"`},
		"too few, unrelated":   {v3 + "hello\n", ""},
		"error action":         {v3 + "kibotos-node 1 all none < 2 all none **ERROR**\n", `cannot understand action "**ERROR**" for kibotos-node`},
		"configuration only":   {"VERSION 3\nkibotos-node=1\n\n", ""},
		"no empty line at all": {"VERSION 3\nkibotos-node 1 all none < 2 all none /n.deb", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ReadAptHook(strings.NewReader(tc.in), byName)
			if err != nil || c.Words() != tc.words || c.empty() != (tc.words == "") {
				t.Errorf("got %q %v, want %q", c.Words(), err, tc.words)
			}
		})
	}
	long := strings.NewReader("VERSION 3\n" + strings.Repeat("x", 2*maxHookLine) + "\n\nhello")
	if _, err := ReadAptHook(long, byName); err == nil || long.Len() > 0 {
		t.Errorf("%v, %d bytes unread", err, long.Len())
	}
}

func FuzzReadAptHook(f *testing.F) {
	paths, err := filepath.Glob("testdata/apt-hook/*.txt")
	if err != nil || len(paths) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, in string) {
		c, err := ReadAptHook(strings.NewReader(in), byName)
		if err == nil && !c.empty() && !strings.Contains(in, "kibotos-") && c.Unclear == nil {
			t.Fatalf("refused without a kibotos package: %q", c.Words())
		}
		for name := range c.Install {
			if !Gated(name) {
				t.Fatalf("gates %q", name)
			}
		}
	})
}

func TestReadDpkgArgs(t *testing.T) {
	for line, want := range map[string]DpkgCall{
		"-i a.deb b.deb": {Operands: []string{"a.deb", "b.deb"}},
		"--unpack --auto-deconfigure --recursive /d": {Recursive: true, Operands: []string{"/d"}},
		"-iR /d":                                 {Recursive: true, Operands: []string{"/d"}},
		"--remove --pending":                     {Pending: true},
		"-ra":                                    {Pending: true},
		"-D 77 -i a.deb":                         {Operands: []string{"a.deb"}},
		"--log /var/log/x --root=/ -i a.deb":     {Operands: []string{"a.deb"}},
		"-i -- -odd.deb --recursive":             {Operands: []string{"-odd.deb", "--recursive"}},
		"--force-confold --status-fd 21 -r name": {Operands: []string{"name"}},
		"-":                                      {Operands: []string{"-"}},
		"--log":                                  {},
	} {
		got := ReadDpkgArgs(strings.Fields(line))
		if got.Recursive != want.Recursive || got.Pending != want.Pending || !slices.Equal(got.Operands, want.Operands) {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
}

func FuzzReadDpkgArgs(f *testing.F) {
	f.Add("--unpack\x00--auto-deconfigure\x00kibotos-node_1_all.deb")
	f.Add("-D\x00-i\x00--\x00x")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		call := ReadDpkgArgs(args)
		for _, o := range call.Operands {
			if o == "" && !slices.Contains(args, "--") {
				t.Fatal("an operand out of nothing")
			}
		}
		if last := args[len(args)-1]; len(args) == 1 && last != "" && last[0] != '-' && !slices.Contains(call.Operands, last) {
			t.Fatalf("lost operand %q", last)
		}
	})
}

// fakeProc writes a /proc in which the hook, process 30, is below the given processes, nearest first.
func fakeProc(t *testing.T, cgroup, cwd string, above ...[]string) Procs {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "sys/kernel/random/boot_id"), "boot-1\n", 0o644)
	chain := append([][]string{{"kibo-agent"}, {"sh"}}, above...)
	for i, argv := range chain {
		dir := filepath.Join(root, strconv.Itoa(30-i))
		ppid := 30 - i - 1
		if i == len(chain)-1 {
			ppid = 0
		}
		stat := strconv.Itoa(30-i) + " (" + filepath.Base(argv[0]) + ") S " + strconv.Itoa(ppid) + strings.Repeat(" 0", 17) + " " + strconv.Itoa(1000-i) + " 0"
		write(t, filepath.Join(dir, "stat"), stat, 0o644)
		write(t, filepath.Join(dir, "cmdline"), strings.Join(argv, "\x00")+"\x00", 0o644)
		write(t, filepath.Join(dir, "cgroup"), cgroup, 0o644)
		if err := os.Symlink(cwd, filepath.Join(dir, "cwd")); err != nil {
			t.Fatal(err)
		}
	}
	return Procs{Root: root}
}

func TestDpkgChange(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kibotos-node_1_all.deb", "hidden-kibotos-gw_2_all.deb", "hello_3_all.deb", "junk", "sub/kibotos-e2b_4_all.deb", "sub/notes.txt"} {
		write(t, filepath.Join(dir, name), "", 0o644)
	}
	installed := func() ([]Package, error) {
		return []Package{{"kibotos-node", "0.9", "install", "installed"}, {"kibotos-gw", "0.8", "deinstall", "installed"},
			{"kibotos-e2b", "0.7", "deinstall", "config-files"}, {"hello", "1", "deinstall", "installed"}}, nil
	}
	for name, tc := range map[string]struct {
		action string
		argv   []string
		words  string
	}{
		"relative path":    {"install", []string{"dpkg", "-i", "kibotos-node_1_all.deb"}, "install kibotos-node 1"},
		"absolute path":    {"unpack", []string{"/usr/bin/dpkg", "--unpack", dir + "/kibotos-node_1_all.deb"}, "install kibotos-node 1"},
		"misleading name":  {"install", []string{"dpkg", "-i", "./hidden-kibotos-gw_2_all.deb"}, "install kibotos-gw 2"},
		"unrelated":        {"install", []string{"dpkg", "-i", "hello_3_all.deb"}, ""},
		"does not exist":   {"install", []string{"dpkg", "-i", "kibotos-none_1_all.deb"}, ""},
		"not a deb":        {"install", []string{"dpkg", "-i", "hello_3_all.deb", "junk"}, "is no .deb that dpkg-deb can read"},
		"directory":        {"install", []string{"dpkg", "-iR", "sub"}, "install kibotos-e2b 4"},
		"directory only":   {"install", []string{"dpkg", "-i", "sub"}, ""},
		"remove":           {"remove", []string{"dpkg", "-r", "hello", "kibotos-node:all"}, "remove kibotos-node 0.9"},
		"purge":            {"purge", []string{"dpkg", "-P", "kibotos-node"}, "remove kibotos-node 0.9"},
		"purge leftovers":  {"purge", []string{"dpkg", "-P", "kibotos-e2b"}, ""},
		"remove unrelated": {"remove", []string{"dpkg", "-r", "hello"}, ""},
		"remove pending":   {"remove", []string{"dpkg", "--remove", "--pending"}, "remove kibotos-gw 0.8"},
		"configure":        {"configure", []string{"dpkg", "--configure", "kibotos-node"}, ""},
		"triggers":         {"triggers-only", []string{"dpkg", "--triggers-only", "-a"}, ""},
		"no action":        {"", []string{"dpkg", "-i", "kibotos-node_1_all.deb"}, ""},
		"not below dpkg":   {"install", []string{"other", "-i", "x"}, "cannot find the dpkg that called this hook, and there are kibotos packages on this host"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Dpkg{Procs: fakeProc(t, "0::/\n", dir, tc.argv, []string{"bash"}), PID: 30, Control: byName, Installed: installed}
			c, err := d.Change(tc.action)
			if err != nil || c.Words() != tc.words {
				t.Errorf("got %q %v, want %q", c.Words(), err, tc.words)
			}
		})
	}
	none := Dpkg{Procs: Procs{Root: t.TempDir()}, PID: 30, Control: byName, Installed: func() ([]Package, error) { return nil, nil }}
	if c, err := none.Change("install"); err != nil || !c.empty() {
		t.Errorf("a host without kibotos packages is held up without /proc: %q %v", c.Words(), err)
	}
	none.Installed = func() ([]Package, error) { return nil, errors.New("no dpkg-query") }
	if _, err := none.Change("install"); err == nil {
		t.Error("not knowing anything is no error")
	}
}

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
