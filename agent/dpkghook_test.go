package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

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
