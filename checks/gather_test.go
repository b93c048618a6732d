package checks

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/remote/command"
)

// replay answers a batch with what it was given.
type replay struct {
	results []command.Result
	err     error
	batches []command.Batch
}

func (r *replay) RunBatch(_ context.Context, b command.Batch) ([]command.Result, error) {
	r.batches = append(r.batches, b)
	return r.results, r.err
}

func baseFacts(t testing.TB) (Want, []command.Result) {
	t.Helper()
	base := readCase(t, filepath.Join("testdata", "facts", "base.txtar"))
	w := wantOf(base)
	return w, results(t, w, base)
}

func TestGatherAsksOnce(t *testing.T) {
	w, res := baseFacts(t)
	r := &replay{results: res}
	f, err := Gather(t.Context(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.batches) != 1 || r.batches[0].StopOnFailure || len(r.batches[0].Commands) != len(res) {
		t.Errorf("asked %d times", len(r.batches))
	}
	for _, c := range r.batches[0].Commands {
		if c.Effect != command.Reads || len(c.Stdin) > 0 {
			t.Errorf("%v does not just read", c.Argv)
		}
	}
	if _, err := f.Skew.Get(); !errors.Is(err, ErrNotGathered) {
		t.Errorf("skew without a clock: %v", err)
	}
	if _, err := Gather(t.Context(), &replay{err: errors.New("cable cut")}, w); err == nil || !strings.Contains(err.Error(), "node-a: cable cut") {
		t.Errorf("got %v", err)
	}
}

func TestMissingResultsAreUnknown(t *testing.T) {
	w, res := baseFacts(t)
	for n := range res {
		f := ParseFacts(w, res[:n])
		if _, err := f.VMMs.Get(); err == nil {
			t.Fatalf("with %d of %d results the VMs are known", n, len(res))
		}
	}
	if _, err := ParseFacts(w, nil).Parts[0].Version.Get(); err == nil || errors.Is(err, ErrNotInstalled) {
		t.Errorf("no answer at all: %v", err)
	}
}

func TestSkew(t *testing.T) {
	asked := time.Unix(1000, 0)
	for host, want := range map[int64]time.Duration{
		1000: 0, 1001: 0, 1002: 0, // somewhere within the two seconds that the answer took
		999:  0, // 999.9 is told as 999
		1010: 8 * time.Second,
		990:  -9 * time.Second,
	} {
		got, err := skew(Known(time.Unix(host, 0)), asked, asked.Add(2*time.Second)).Get()
		if err != nil || got != want {
			t.Errorf("host at %d: got %v, %v; want %v", host, got, err, want)
		}
	}
	if _, err := skew(Unknown[time.Time](errors.New("x")), asked, asked).Get(); err == nil {
		t.Error("a skew without a clock")
	}
}

func TestOverriddenVersionCommand(t *testing.T) {
	w := Want{
		Host: "a", Parts: []release.Part{release.Ctrl},
		Commands: map[release.Part]map[string][]string{release.Ctrl: {"version": {"podman", "exec", "ctrl", "kibotos-ctrl", "version", "--json"}}},
	}
	found := slices.ContainsFunc(FactsBatch(w).Commands, func(c command.Command) bool { return c.Argv[0] == "podman" })
	if !found {
		t.Error("the inventory's command is not used")
	}
}

// runScript runs a fixed script as a host would, with a directory of stand-ins before PATH.
func runScript(t *testing.T, bin string, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", argv[2:], err)
	}
	return string(out)
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// proves K56
func TestUnitScript(t *testing.T) {
	dir := t.TempDir()
	dropIn := filepath.Join(dir, "override.conf")
	writeFile(t, dropIn, "[Service]\n ExecStart=\nExecStart=/usr/bin/kibotos-gw --listen :1\n", 0o600)
	harmless := filepath.Join(dir, "limits.conf")
	writeFile(t, harmless, "[Service]\n# ExecStart=/no\nLimitNOFILE=1\n", 0o600)
	writeFile(t, filepath.Join(dir, "systemctl"), `#!/bin/sh
printf 'Id=%s\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nMainPID=%s\nNRestarts=0\n' kibotos-gw.service "$PPID"
printf 'ActiveEnterTimestamp=Mon 2026-11-30 18:00:01 UTC\nControlGroup=\nFragmentPath=/lib/x\nDropInPaths=%s %s\n' "`+harmless+`" "`+dropIn+`"
`, 0o700)
	out := runScript(t, dir, "sh", "-c", unitScript, UnitScriptName, "kibotos-gw.service")
	if !strings.Contains(out, "ExecOverride="+dropIn+"\n") || strings.Contains(out, "ExecOverride="+harmless) {
		t.Errorf("drop-ins: %s", out)
	}
	for _, line := range []string{"\nProcesses=", "\nExe="} {
		if strings.Count(out, line) != 1 {
			t.Errorf("%q is not there once: %s", line, out)
		}
	}
	// Where the test runs there may be no control groups of systemd's form, and the stand-in's parent may be gone.
	out = strings.Replace(out, "Processes=?", "Processes=0", 1)
	out = strings.Replace(out, "\nExe=\n", "\nExe=/bin/sh\n", 1)
	u, err := parseUnit(out)
	if err != nil || !u.ExecOverride || u.Name != "kibotos-gw.service" {
		t.Errorf("got %+v, %v", u, err)
	}
}

// proves K10
func TestStageScript(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "0.1.4-0a1b2c3d")
	read := func() (Staged, error) {
		out := runScript(t, "", "sh", "-c", stageScript, StageScriptName, dir)
		return parseStaged(dir)(command.Result{Stdout: []byte(out)})
	}
	if s, err := read(); err != nil || s.Exists || len(s.Others) > 0 {
		t.Errorf("absent: got %+v, %v", s, err)
	}
	if err := os.Symlink(root, dir); err != nil {
		t.Fatal(err)
	}
	if s, err := read(); err == nil {
		t.Errorf("a symbolic link passes: %+v", s)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "a b.deb"), "x", 0o600)
	writeFile(t, filepath.Join(dir, "next-node/usr/bin/kibotos-node"), "#!/bin/sh\nprintf '{\"name\":\"kibotos-node\",\\n \"version\":\"0.1.4\"}\\n'\n", 0o700)
	writeFile(t, filepath.Join(dir, "next-gw/usr/bin/kibotos-gw"), "#!/bin/sh\necho '*' broken >&2\nexit 3\n", 0o700)
	writeFile(t, filepath.Join(root, "0.1.3-ffffffff/complete"), "", 0o600)
	s, err := read()
	if err != nil || !s.Exists || s.Marker || s.Version[release.Node] != "0.1.4" || s.Failed[release.GW] != "exit status 3: * broken" {
		t.Errorf("got %+v, %v", s, err)
	}
	if s.Debs["a b.deb"] != "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" || !slices.Equal(s.Others, []string{"0.1.3-ffffffff"}) {
		t.Errorf("got %+v", s)
	}
	writeFile(t, filepath.Join(dir, "complete"), "", 0o600)
	if s, err := read(); err != nil || !s.Marker {
		t.Errorf("complete: got %+v, %v", s, err)
	}
}

func FuzzParseFacts(f *testing.F) {
	w, res := baseFacts(f)
	for i, r := range res {
		f.Add(i, r.Exit, r.Stdout, r.Stderr)
	}
	f.Add(0, 0, []byte("\x1b[2J"), []byte(strconv.Itoa(1)))
	f.Fuzz(func(t *testing.T, i, exit int, stdout, stderr []byte) {
		if i < 0 || i >= len(res) {
			return
		}
		answers := slices.Clone(res)
		answers[i] = command.Result{Exit: exit, Stdout: stdout, Stderr: stderr}
		facts := ParseFacts(w, answers)
		in := Input{Hosts: []HostInput{{Name: "node-a", Parts: w.Parts, NodeName: "node-a", StageDir: w.StageDir, Facts: facts}}}
		for _, found := range Evaluate(in) {
			if suspicious(found.Text) || strings.ContainsAny(found.Text, "\n\r\t") {
				t.Errorf("unsafe text in %s: %q", found.Check, found.Text)
			}
		}
	})
}

func FuzzUnit(f *testing.F) {
	_, res := baseFacts(f)
	for _, r := range res {
		f.Add(string(r.Stdout))
	}
	f.Fuzz(func(t *testing.T, out string) {
		if u, err := parseUnit(out); err == nil {
			for _, s := range []string{u.Name, u.Load, u.Active, u.Sub} {
				if !word(s, 256) {
					t.Errorf("accepted %q", s)
				}
			}
			if u.MainPID < 0 || u.Processes < 0 {
				t.Errorf("accepted %+v", u)
			}
		}
		_, _ = parseVMMs(out)
	})
}
