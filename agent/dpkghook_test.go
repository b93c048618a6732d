package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	for _, name := range []string{"kibotos-node_1_all.deb", "hidden-kibotos-gw_2_all.deb", "hello_3_all.deb", "junk", "sub/kibotos-e2b_4_all.deb", "sub/notes.txt", "v2/kibotos-node_2_all.deb",
		"instead-of-node_5_all.deb"} {
		write(t, filepath.Join(dir, name), "", 0o644)
	}
	write(t, filepath.Join(dir, "linked/notes.txt"), "", 0o644)
	links := []error{os.Symlink("../sub", filepath.Join(dir, "linked/there")), os.Symlink("../linked", filepath.Join(dir, "sub/back")),
		os.Symlink("nowhere", filepath.Join(dir, "linked/gone.deb")), os.Symlink("self", filepath.Join(dir, "linked/self")), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)}
	if err := errors.Join(links...); err != nil {
		t.Fatal(err)
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
		"linked directory": {"install", []string{"dpkg", "-iR", "linked"}, "install kibotos-e2b 4"},
		"standard input":   {"install", []string{"dpkg", "-i", "/dev/stdin"}, "install kibotos-node 1"},
		"descriptor":       {"install", []string{"dpkg", "-i", "/dev/fd/0"}, "install kibotos-node 1"},
		"own descriptor":   {"install", []string{"dpkg", "-i", "/proc/self/fd/0"}, "install kibotos-node 1"},
		"pipe":             {"install", []string{"dpkg", "-i", "pipe"}, "is neither a file nor a directory, so what is in it cannot be told"},
		"two versions":     {"install", []string{"dpkg", "-i", "v2/kibotos-node_2_all.deb", "kibotos-node_1_all.deb"}, "install kibotos-node 1, kibotos-node in two versions at once, 2 and 1"},
		"takes its place":  {"install", []string{"dpkg", "-i", "instead-of-node_5_all.deb"}, "remove kibotos-node 0.9"},
		"upper case":       {"remove", []string{"dpkg", "-r", "KIBOTOS-Node"}, "remove kibotos-node 0.9"},
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
			fd := d.Procs.file(28, "fd") // of dpkg: kibo-agent is 30, its shell 29
			if err := errors.Join(os.Mkdir(fd, 0o755), os.Symlink(filepath.Join(dir, "kibotos-node_1_all.deb"), fd+"/0")); err != nil {
				t.Fatal(err)
			}
			c, err := d.Change(tc.action)
			if err != nil || !strings.HasSuffix(c.Words(), tc.words) || tc.words == "" && !c.empty() {
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

// A dpkg under another name, as a diversion leaves it, is known by the script it called: unrelated packages pass.
func TestDivertedDpkg(t *testing.T) {
	dir := t.TempDir()
	for name, words := range map[string]string{"hello_3_all.deb": "", "kibotos-node_1_all.deb": "install kibotos-node 1"} {
		write(t, filepath.Join(dir, name), "", 0o644)
		d := Dpkg{Procs: fakeProc(t, "0::/\n", dir, []string{"dpkg-hook"}, []string{"/usr/bin/dpkg.distrib", "-i", name}, []string{"bash"}), PID: 30, Control: byName}
		if c, err := d.Change("install"); err != nil || c.Words() != words {
			t.Errorf("%s: got %q %v, want %q", name, c.Words(), err, words)
		}
	}
}

func TestGatedIn(t *testing.T) {
	for relations, want := range map[string]string{
		",,": "", "libc6 (>= 2),x-kibotos-node,": "",
		"a | kibotos-gw(<< 2),Kibotos-Node:any (= 1), kibotos-e2b": "kibotos-gw kibotos-node kibotos-e2b",
	} {
		if got := strings.Join(gatedIn(relations), " "); got != want {
			t.Errorf("%q: got %q, want %q", relations, got, want)
		}
	}
}
