package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// dpkgList is a host's packages, which a test changes.
type dpkgList struct {
	packages map[string]string // name → version; "name" → "1 half-installed" for another state
	err      error
	at       time.Time
}

func (d *dpkgList) versions(t *testing.T) Versions {
	t.Helper()
	return Versions{Path: filepath.Join(t.TempDir(), "versions", "versions.json"), Now: func() time.Time { return d.at },
		Installed: func() ([]Package, error) {
			var all []Package
			for name, text := range d.packages {
				p := Package{Name: name, Want: "install", Status: "installed"}
				_, _ = fmt.Sscan(text, &p.Version, &p.Status)
				all = append(all, p)
			}
			return all, d.err
		}}
}

func words(all []gate.Ungated) string {
	s := ""
	for _, u := range all {
		s += fmt.Sprintf("%s %s>%s ", u.Package, u.Was, u.Now)
	}
	return s
}

// proves Z8: a change of a gated package that nobody let through is noticed and reported until acknowledged, and
// one that was let through is not.
func TestVersions(t *testing.T) {
	d := &dpkgList{packages: map[string]string{"kibotos-node": "1", "hello": "1", "kibotos-gw": "1 config-files"}, at: now()}
	v := d.versions(t)
	look := func(want string) {
		t.Helper()
		got, err := v.Look()
		if err != nil || words(got) != want {
			t.Errorf("got %q %v, want %q", words(got), err, want)
		}
	}
	approve := func(c Change) {
		t.Helper()
		if err := v.Approve(c); err != nil {
			t.Fatal(err)
		}
	}
	look("") // the base
	d.packages["hello"] = "2"
	look("")
	approve(install("kibotos-node", "2", "/n.deb"))
	approve(install("kibotos-node", "2", "/n.deb")) // dpkg's hook, after apt's
	look("")
	d.packages["kibotos-node"] = "2 half-installed" // in the middle: nothing can be said
	look("")
	d.packages["kibotos-node"] = "2 unpacked"
	look("")
	d.packages["kibotos-node"] = "2"
	look("")
	d.packages["kibotos-node"] = "1" // back, past the gate
	look("kibotos-node 2>1 ")
	d.packages["kibotos-node"] = "2" // the approval was for one change
	look("kibotos-node 2>1 kibotos-node 1>2 ")
	d.packages["kibotos-e2b"] = "5"
	look("kibotos-node 2>1 kibotos-node 1>2 kibotos-e2b >5 ")
	had, err := v.Acknowledge()
	if err != nil || len(had) != 3 || !had[2].Noticed.Equal(now()) {
		t.Errorf("%+v %v", had, err)
	}
	look("")
	approve(Change{Remove: map[string]string{"kibotos-e2b": "5"}})
	delete(d.packages, "kibotos-e2b")
	look("")
	delete(d.packages, "kibotos-node")
	look("kibotos-node 2> ")
}

// What happened before an approval is not covered by it, and an approval does not last for ever.
func TestVersionsApproval(t *testing.T) {
	d := &dpkgList{packages: map[string]string{"kibotos-node": "1"}, at: now()}
	v := d.versions(t)
	if _, err := v.Look(); err != nil {
		t.Fatal(err)
	}
	d.packages["kibotos-node"] = "2"
	if err := v.Approve(install("kibotos-node", "2", "/n.deb")); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Acknowledge(); err != nil || words(got) != "kibotos-node 1>2 " {
		t.Errorf("%q %v", words(got), err)
	}
	for _, step := range []struct {
		wait time.Duration
		want string
	}{{approvalLasts - time.Second, ""}, {approvalLasts, "kibotos-node 3>4 "}} {
		to := map[string]string{"2": "3", "3": "4"}[d.packages["kibotos-node"]]
		if err := v.Approve(install("kibotos-node", to, "/n.deb")); err != nil {
			t.Fatal(err)
		}
		d.at = d.at.Add(step.wait)
		d.packages["kibotos-node"] = to
		if got, err := v.Look(); err != nil || words(got) != step.want {
			t.Errorf("after %s: %q %v, want %q", step.wait, words(got), err, step.want)
		}
	}
}

func TestVersionsUnknown(t *testing.T) {
	if got, err := (Versions{}).Look(); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	d := &dpkgList{err: errors.New("no dpkg here"), at: now()}
	v := d.versions(t)
	if _, err := v.Look(); err == nil {
		t.Error("no error")
	}
	d.err = nil
	write(t, v.Path, "rubbish", 0o644)
	if _, err := v.Look(); err == nil {
		t.Error("no error")
	}
}

// proves Z8: jobs and hooks let changes through, and say so.
func TestApprovedByJobAndHook(t *testing.T) {
	d := &dpkgList{packages: map[string]string{"kibotos-node": "1", "kibotos-gw": "1"}, at: now()}
	j, _ := newJobs(t)
	j.Versions = d.versions(t)
	open(t, j, gate.AllowFile{})
	o := order("k", "true")
	o.Request = gate.Request{Operation: gate.OpInstall, Packages: map[string]string{"kibotos-node": "2"}}
	if job := mustRun(t, j, o); job.State != gate.JobFinished {
		t.Fatalf("%+v", job)
	}
	if err := guard(t, j, "0::/init.scope\n").Permit(install("kibotos-gw", "2", "/g.deb")); err != nil {
		t.Fatal(err)
	}
	d.packages = map[string]string{"kibotos-node": "2", "kibotos-gw": "2"}
	if got, err := j.Versions.Look(); err != nil || len(got) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := j.Window.Close(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := guard(t, j, "0::/init.scope\n").Permit(install("kibotos-gw", "3", "/g.deb")); err == nil {
		t.Fatal("permitted")
	}
	d.packages["kibotos-gw"] = "3" // all the same, as with dpkg-deb -x
	if got, err := j.Versions.Look(); err != nil || words(got) != "kibotos-gw 2>3 " {
		t.Errorf("%q %v", words(got), err)
	}
}

func TestMarker(t *testing.T) {
	m := Marker{Path: filepath.Join(t.TempDir(), "zincati", "allowfinalize.json")}
	if did, err := m.Remove(); err != nil || did != "there was no marker file" {
		t.Errorf("%q %v", did, err)
	}
	if err := m.Place(1800000000); err != nil {
		t.Fatal(err)
	}
	if did, err := m.Remove(); err != nil || did != "closed" {
		t.Errorf("%q %v", did, err)
	}
}
