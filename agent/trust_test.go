package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// now is the clock of every test here.
func now() time.Time { return time.Unix(1800000000, 0) }

// place is a fresh directory that stands for /, and the trust that begins there.
func place(t *testing.T) (string, Trust) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	return base, Trust{Base: base, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// proves Z2: only a regular file of the right owner and mode, below directories that nobody else can write to
// and reached without links, counts; each defect has its own code.
func TestTrust(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		code   string
		change func(t *testing.T, base, path string, trust *Trust)
	}{
		"as it should be": {"", func(*testing.T, string, string, *Trust) {}},
		"missing":         {gate.CodeMissing, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Remove(p)) }},
		"no directory":    {gate.CodeMissing, func(t *testing.T, b, _ string, _ *Trust) { must(t, os.RemoveAll(filepath.Join(b, "lib"))) }},
		"symlink": {gate.CodeSymlink, func(t *testing.T, _, p string, _ *Trust) {
			must(t, os.Rename(p, p+".real"))
			must(t, os.Symlink(p+".real", p))
		}},
		"dangling symlink": {gate.CodeSymlink, func(t *testing.T, _, p string, _ *Trust) {
			must(t, os.Remove(p))
			must(t, os.Symlink("nowhere", p))
		}},
		"symlink above": {gate.CodeSymlink, func(t *testing.T, b, _ string, _ *Trust) {
			must(t, os.Rename(filepath.Join(b, "lib"), filepath.Join(b, "real")))
			must(t, os.Symlink("real", filepath.Join(b, "lib")))
		}},
		"group may write":  {gate.CodeMode, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Chmod(p, 0o664)) }},
		"others may write": {gate.CodeMode, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Chmod(p, 0o646)) }},
		"nobody may read":  {gate.CodeMode, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Chmod(p, 0o600)) }},
		"executable":       {gate.CodeMode, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Chmod(p, 0o755)) }},
		"other group":      {gate.CodeOwner, func(_ *testing.T, _, _ string, tr *Trust) { tr.GID++ }},
		"hard link":        {gate.CodeHardLink, func(t *testing.T, b, p string, _ *Trust) { must(t, os.Link(p, filepath.Join(b, "second"))) }},
		"directory": {gate.CodeNotRegular, func(t *testing.T, _, p string, _ *Trust) {
			must(t, os.Remove(p))
			must(t, os.Mkdir(p, 0o755))
		}},
		"named pipe": {gate.CodeNotRegular, func(t *testing.T, _, p string, _ *Trust) {
			must(t, os.Remove(p))
			must(t, unix.Mkfifo(p, 0o644))
		}},
		"file as directory": {gate.CodeNotRegular, func(t *testing.T, b, _ string, _ *Trust) {
			must(t, os.RemoveAll(filepath.Join(b, "lib")))
			write(t, filepath.Join(b, "lib"), "", 0o644)
		}},
		"writable directory":   {gate.CodeDirWritable, func(t *testing.T, _, p string, _ *Trust) { must(t, os.Chmod(filepath.Dir(p), 0o775)) }},
		"writable far above":   {gate.CodeDirWritable, func(t *testing.T, b, _ string, _ *Trust) { must(t, os.Chmod(b, 0o757)) }},
		"sticky is not enough": {gate.CodeDirWritable, func(t *testing.T, b, _ string, _ *Trust) { must(t, os.Chmod(b, 0o777|os.ModeSticky)) }},
		"other owner above":    {gate.CodeDirOwner, func(_ *testing.T, _, _ string, tr *Trust) { tr.UID++ }},
		"too big": {gate.CodeTooBig, func(t *testing.T, _, p string, _ *Trust) {
			write(t, p, strings.Repeat(" ", gate.MaxSize+1), 0o644)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			base, trust := place(t)
			path := filepath.Join(base, "lib", "kibo-agent", "allow.json")
			write(t, path, "text", 0o644)
			tc.change(t, base, path, &trust)
			data, err := trust.Read(path)
			if tc.code == "" {
				if err != nil || string(data) != "text" {
					t.Errorf("got %q, %v", data, err)
				}
				return
			}
			if v := gate.Closed(err); err == nil || v.Code != tc.code || v.Reason == "" {
				t.Errorf("got %v (%s), want code %s", err, v.Code, tc.code)
			}
		})
	}
}

func TestTrustOutsideBase(t *testing.T) {
	base, trust := place(t)
	for _, path := range []string{"relative", base, filepath.Dir(base), base + "/../x"} {
		if _, err := trust.Read(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// proves Z2: the owner's other files are told apart by user, too.
func TestTrustOwner(t *testing.T) {
	base, trust := place(t)
	path := filepath.Join(base, "allow.json")
	write(t, path, "{}", 0o644)
	fd, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFD(fd)
	trust.UID++
	_, err = trust.file(fd, path)
	if v := gate.Closed(err); v.Code != gate.CodeOwner {
		t.Errorf("got %v", err)
	}
}
