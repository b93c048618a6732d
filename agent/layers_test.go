package agent

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

const goodDump = `APT "";
DPkg::Pre-Install-Pkgs "";
DPkg::Pre-Install-Pkgs:: "/usr/sbin/dpkg-preconfigure --apt || true";
DPkg::Pre-Install-Pkgs:: "/usr/bin/./test -x /etc/kibo-agent/apt-hook && exec /etc/kibo-agent/apt-hook; ! grep ^kibotos- >&2";
DPkg::Tools::Options::/usr/bin/./test::Version "3";
`

// A gate that only seems to be installed must not be taken for one.
func TestLayers(t *testing.T) {
	line := "# comment\npre-invoke=if test -x /etc/kibo-agent/dpkg-hook; then exec /etc/kibo-agent/dpkg-hook; fi\n"
	for name, tc := range map[string]struct {
		dump, file string
		without    string // a program that is not there
		apt, dpkg  string // part of the reason; empty: active
	}{
		"both":             {goodDump, "kibo-agent", "", "", ""},
		"cleared later":    {"DPkg::Pre-Install-Pkgs \"\";\nDPkg::Tools::Options::/usr/bin/./test::Version \"3\";\n", "kibo-agent", "", "does not have", ""},
		"no protocol":      {strings.Replace(goodDump, `"3"`, `"2"`, 1), "kibo-agent", "", "protocol 3", ""},
		"name with a dot":  {goodDump, "kibo-agent.dpkg-new", "", "", "no file that dpkg reads"},
		"backup":           {goodDump, "kibo-agent~", "", "", "no file that dpkg reads"},
		"no script":        {goodDump, "kibo-agent", AptHookPath, "apt-hook", ""},
		"no dpkg script":   {goodDump, "kibo-agent", DpkgHookPath, "", "dpkg-hook"},
		"no agent":         {goodDump, "kibo-agent", "/usr/bin/kibo-agent", "kibo-agent", "kibo-agent"},
		"apt is not there": {"", "kibo-agent", "", "no apt-config", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, p := range []string{AptHookPath, DpkgHookPath, "/usr/bin/kibo-agent"} {
				if p != tc.without {
					write(t, filepath.Join(root, p), "", 0o755)
				}
			}
			write(t, filepath.Join(root, "etc/dpkg/dpkg.cfg.d", tc.file), line, 0o644)
			l := Layers{Root: root, AptDump: func() (string, error) {
				if tc.dump == "" {
					return "", errors.New("no apt-config")
				}
				return tc.dump, nil
			}}
			for i, want := range []string{tc.apt, tc.dpkg} {
				if got := l.Test()[i]; got.Active != (want == "") || !strings.Contains(got.Reason, want) {
					t.Errorf("%+v, want reason %q", got, want)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	j, u := newJobs(t)
	j.Inhibitors = func(context.Context) ([]gate.Inhibitor, error) { return nil, errors.New("bus is asleep") }
	l := Layers{Root: t.TempDir(), AptDump: func() (string, error) { return goodDump, nil }}
	s, err := Status(t.Context(), "1.0", j, l)
	if err != nil || s.Open || s.Code != gate.CodeMissing || s.Window != nil || len(s.Layers) != 2 || len(s.Jobs) != 0 ||
		len(s.Inhibitors) != 1 || s.Inhibitors[0].Mode != "unknown" {
		t.Errorf("%+v %v", s, err)
	}
	j.Inhibitors = func(context.Context) ([]gate.Inhibitor, error) { return nil, errNoLogind }
	open(t, j, gate.AllowFile{})
	mustRun(t, j, order("k", "true"))
	u.all.Wait()
	s, err = Status(t.Context(), "1.0", j, l)
	if err != nil || !s.Open || s.Window == nil || len(s.Inhibitors) != 0 || len(s.Jobs) != 1 {
		t.Errorf("%+v %v", s, err)
	}
	j.Now = func() time.Time { return now().Add(25 * time.Hour) }
	if s, err = Status(t.Context(), "1.0", j, l); err != nil || len(s.Jobs) != 0 {
		t.Errorf("%+v %v", s, err)
	}
}
