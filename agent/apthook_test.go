package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// byName reads control data out of file names, which only a test may do.
func byName(deb string) (Control, error) {
	if file, err := os.Readlink(deb); err == nil {
		deb = file // a descriptor
	}
	name, rest, ok := strings.Cut(filepath.Base(deb), "_")
	version, _, ok2 := strings.Cut(rest, "_")
	if !ok || !ok2 {
		return Control{}, errNotDeb
	}
	if other, ok := strings.CutPrefix(name, "instead-of-"); ok {
		return Control{Package: name, Version: version, Displaces: []string{"kibotos-" + other}}, nil
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

// proves Z1: of two versions in one transaction none hides behind the other.
func TestAptTwoVersions(t *testing.T) {
	lines := "VERSION 3\n\n"
	for _, v := range []string{"9", "1"} {
		lines += "kibotos-node 0.9 amd64 none < " + v + " amd64 none /x/kibotos-node_" + v + ".deb\n"
	}
	c, err := ReadAptHook(strings.NewReader(lines), byName)
	if err != nil || len(c.Unclear) != 1 || len(c.Debs) != 2 {
		t.Errorf("got %+v %v", c, err)
	}
}
