//go:build linux

package lab

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

func TestParseMounts(t *testing.T) {
	table := parseMounts(`22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
41 22 0:40 / /lab/hosts/a/root rw - overlay overlay rw,lowerdir=/cache/base,upperdir=/lab/hosts/a/upper,workdir=/lab/hosts/a/work
42 41 0:41 / /lab/hosts/a/root/with\040space rw - tmpfs tmpfs rw
43 22 0:42 / /labour rw - tmpfs tmpfs rw
not a mount
`)
	if got, want := table.below("/lab"), []string{"/lab/hosts/a/root/with space", "/lab/hosts/a/root"}; !slices.Equal(got, want) {
		t.Errorf("below /lab: %q, want %q", got, want)
	}
	if got := table.ofKind("cgroup2"); !slices.Equal(got, []string{"/sys/fs/cgroup/unified"}) {
		t.Errorf("cgroup2: %q", got)
	}
	for dir, want := range map[string]bool{"/cache/base": true, "/cache/bas": false, "/lab/hosts/a/upper": false} {
		if got := table.lower(dir); got != want {
			t.Errorf("overlay on %s: %t, want %t", dir, got, want)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n")
	f.Add("a - b")
	f.Fuzz(func(_ *testing.T, text string) {
		parseMounts(text).below("/")
	})
}

func TestIsInit(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tsystemd\nState:\tS (sleeping)\nNSpid:\t4711\t1\n": true,
		"Name:\tsystemd\nNSpid:\t1\n":                             false, // of this machine
		"Name:\tsystemd\nNSpid:\t4711\t17\n":                      false,
		"Name:\tsystemd-nspawn\nNSpid:\t4711\t1\n":                false, // still sees this machine's files
		"Name:\tsh\nNSpid:\t4711\t1\n":                            false,
		"":                                                        false,
		"Name:\tsystemd\n":                                        false,
	} {
		if got := isInit(status); got != want {
			t.Errorf("%q: %t, want %t", status, got, want)
		}
	}
}

func FuzzIsInit(f *testing.F) {
	f.Add("Name:\tsystemd\nNSpid:\t4711\t1\n")
	f.Fuzz(func(_ *testing.T, status string) { isInit(status) })
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); !errors.Is(err, errBusy) {
		t.Errorf("second lock: %v, want %v", err, errBusy)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := waitLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
