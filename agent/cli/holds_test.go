package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/agent/gate"
)

// holding is a console of a host that keeps holds and versions.
func holding(t *testing.T) (*console, map[string]string) {
	t.Helper()
	c := newConsole(t)
	packages := map[string]string{"kibotos-node": "0.1.2"}
	dir := c.host.Jobs.Dir
	c.host.Jobs.Window.Holds = agent.Holds{Dir: filepath.Join(dir, "holds"), Trust: c.host.Jobs.Window.Trust}
	c.host.Jobs.Versions = agent.Versions{Path: filepath.Join(dir, "versions", "versions.json"), Now: now,
		Installed: func() ([]agent.Package, error) {
			return []agent.Package{{Name: "kibotos-node", Version: packages["kibotos-node"], Status: "installed"}}, nil
		}}
	c.host.Jobs.Units = here{&c.host.Jobs}
	c.host.Guard.Jobs = c.host.Jobs
	c.host.Marker = agent.Marker{Path: filepath.Join(dir, "zincati", "allowfinalize.json")}
	c.host.Getenv = func(key string) string { return map[string]string{"SUDO_USER": "ann"}[key] }
	return c, packages
}

// step is a command line with its exit code and what it prints, on either stream.
type step struct {
	line string
	exit int
	says string
}

func (c *console) tell(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		if got := c.run(t, s.line); got != s.exit || !strings.Contains(c.out.String()+c.err.String(), s.says) {
			t.Fatalf("%s\nexit %d, want %d and %q\nstdout %s\nstderr %s", s.line, got, s.exit, s.says, &c.out, &c.err)
		}
	}
}

// A held host: who, why and since when are said everywhere, and what is stopped can still be started.
func TestHoldStory(t *testing.T) {
	c, _ := holding(t)
	c.tell(t, []step{
		{"release", 0, "there was no such hold\n"},
		{"hold", 2, "--why is missing"},
		{"hold --why demo --id a/b", 2, "no id of a hold"},
		{"hold --why demo", 0, "ann holds this host since 2027-01-15 08:00:00 UTC: demo (hold 20270115-080000)\nnext: kibo-agent release --id 20270115-080000\n"},
		{"hold --why disk --by ben --id disk --output json", 0, `{"id":"disk","who":"ben","why":"disk","since":"2027-01-15T08:00:00Z"}`},
		{"allow --for 30m", 0, "placed until 2027-01-15 08:30:00 UTC, but closed: ann holds this host"},
		{"allow --for 30m --output json", 0, `"open":false,"code":"held"`},
		{"check --operation stop", 4, "closed: ann holds this host"},
		{"check --operation start", 0, "open until"},
		{"check --output json", 4, `"code":"held"`},
		{"run --key a --operation stop --output json -- true", 4, `"code":"held"`},
		{"run --key b --operation start --output json -- true", 0, `"state":"finished"`},
		{"run --key c --operation cancel-drain --output json -- true", 0, `"state":"finished"`},
		{"status", 0, "hold: ben holds this host since 2027-01-15 08:00:00 UTC: disk (hold disk)\n"},
		{"status --output json", 0, `"holds":[{"id":"20270115-080000","who":"ann","why":"demo","since":"2027-01-15T08:00:00Z"},{"id":"disk",`},
		{"release", 1, "cannot tell which hold to release: there are 20270115-080000, disk"},
		{"release --id disk --all", 2, "either --id or --all"},
		{"release --id disk", 0, "released: ben holds this host since 2027-01-15 08:00:00 UTC: disk (hold disk)\nstill held: ann"},
		{"release --id disk", 0, "there was no such hold\nstill held: ann"},
		{"release --all --output json", 0, `{"released":[{"id":"20270115-080000","who":"ann","why":"demo","since":"2027-01-15T08:00:00Z"}],"left":[]}`},
		{"check --operation stop", 0, "open until"},
	})
}

// proves Z4: a lease, by the command line.
func TestLeaseStory(t *testing.T) {
	c, _ := holding(t)
	c.tell(t, []step{
		{"allow --for 3m --lease", 2, "--lease needs --id"},
		{"allow --lease --id l", 2, "--lease needs --for"},
		{"allow --for 3m --max 1h", 2, "--max belongs to --lease"},
		{"allow --for 3m --max 1h --until 1800003600 --lease --id l", 2, "either --until or --max"},
		{"allow --for 3m --lease --id l", 0, "3m0s left); can be renewed until 2027-01-15 12:00:00 UTC\n"},
		{"allow --for 3m --lease --id l --until 1800000600", 0, "can be renewed until 2027-01-15 08:10:00 UTC"},
		{"allow --for 3m --lease --id l --max 5m --output json", 0, `"renewUntil":1800000300`},
		{"renew --for 3m", 2, "--id is missing"},
		{"renew --id l", 2, "no window"},
		{"renew --id l --for 3m", 0, "open until 2027-01-15 08:03:00 UTC"},
		{"renew --id m --for 3m", 4, `not renewed: the window that is there is "l", not "m"`},
		{"renew --id l --for 4m --output json", 0, `"until":"2027-01-15T08:04:00Z"`},
		{"renew --id l --for 40m --output json", 0, `"until":"2027-01-15T08:05:00Z"`},
		{"hold --why demo", 0, "holds"},
		{"renew --id l --for 40m", 0, "but closed: ann holds"},
		{"close", 0, "closed"},
		{"renew --id l --for 3m --output json", 4, `"code":"missing"`},
		{"allow --for 3m --id l", 0, "but closed"},
		{"renew --id l --for 3m --output json", 4, `"code":"no-lease"`},
		{"allow --for 3m --lease --id l --max 337h", 1, "14 days"},
	})
}

// proves Z1: a window for one run on one machine, by the command line.
func TestBindingStory(t *testing.T) {
	c, _ := holding(t)
	c.tell(t, []step{
		{"allow --for 3m --run r1 --plan sha256:ab", 0, "open until"},
		{"check", 0, "open until"},
		{"check --operation stop", 4, "the window is for run r1, not none"},
		{"check --operation stop --run r1 --output json", 4, `"code":"other-plan"`},
		{"check --operation stop --run r1 --plan sha256:ab", 0, "open until"},
		{"run --key k --operation stop --run r2 --output json -- true", 4, `"code":"other-run"`},
		{"run --key k --operation stop --run r1 --plan sha256:ab --output json -- true", 0, `"state":"finished"`},
		{"run --key k --operation stop --run a/b -- true", 2, "no run"},
		{"allow --for 3m --machine-id 0123456789abcdef0123456789abcdef", 1, "the window is for machine 0123456789abcdef0123456789abcdef"},
		{"allow --for 3m --machine-id here", 1, "machineId is wrong"},
	})
}

func TestAcknowledgeStory(t *testing.T) {
	c, packages := holding(t)
	c.tell(t, []step{{"status", 0, "gate: closed"}, {"acknowledge", 0, "there was nothing to acknowledge\n"}})
	packages["kibotos-node"] = "0.1.4"
	c.tell(t, []step{
		{"status", 0, "ungated: kibotos-node went from 0.1.2 to 0.1.4 past the gate, noticed 2027-01-15 08:00:00 UTC\n"},
		{"status --output json", 0, `"ungated":[{"package":"kibotos-node","was":"0.1.2","now":"0.1.4","noticed":"2027-01-15T08:00:00Z"}]`},
		{"acknowledge --output json", 0, `{"acknowledged":[{"package":"kibotos-node"`},
		{"acknowledge --output json", 0, `{"acknowledged":[]}`},
	})
	if c.run(t, "status"); strings.Contains(c.out.String(), "ungated") {
		t.Errorf("still %s", &c.out)
	}
}

// proves Z9: the file of Zincati's proposed strategy, which can hold nothing but an end.
func TestMarkerStory(t *testing.T) {
	c, _ := holding(t)
	c.tell(t, []step{
		{"allow --for 3m --format zip", 2, "--format must be allow-file or marker-file"},
		{"allow --for 3m --format marker-file --once", 2, "holds nothing but an end"},
		{"allow --for 3m --format marker-file --operation reboot", 2, "holds nothing but an end"},
		{"allow --for 337h --format marker-file", 1, "14 days"},
		{"allow --for 3m --format marker-file --output json", 0, `allowfinalize.json","allowUntil":1800000180,"until":"2027-01-15T08:03:00Z"}`},
		{"check", 4, "closed"},
		{"close --format marker-file --id x", 2, "has no id"},
		{"close --format marker-file", 0, "closed\n"},
		{"close --format marker-file", 0, "there was no marker file\n"},
	})
}

func TestStatusOfUnknownVersions(t *testing.T) {
	if got := ungated(gate.Ungated{Package: "unknown", Now: "no dpkg", Noticed: time.Unix(0, 0)}); got != "whether packages changed past the gate is unknown: no dpkg" {
		t.Error(got)
	}
}
