//go:build lab && linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/lab"
)

// agentStatus is what the host's agent says of itself.
func agentStatus(t *testing.T, host string) gate.Status {
	t.Helper()
	var s gate.Status
	if err := json.Unmarshal([]byte(Exec(t, host, "kibo-agent", "status", "--output", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// answers asks the gate on the host and wants an exit status and a text.
func answers(t *testing.T, host string, exit int, says string, args ...string) {
	t.Helper()
	got := Try(t, host, append([]string{"kibo-agent"}, args...)...)
	if got.Exit != exit || !strings.Contains(got.Stdout+got.Stderr, says) {
		t.Errorf("%q: %+v, want exit %d and %q", args, got, exit, says)
	}
}

// TestGateHold proves Z7 and Z8 on both Debian releases: a person's no holds for jobs, apt and dpkg, with or
// without a daemon, until it is released; a change that goes past the gate is noticed.
func TestGateHold(t *testing.T) {
	for _, host := range gated(t) {
		t.Run(host.Suite, func(t *testing.T) {
			t.Run("held", func(t *testing.T) { heldByPerson(t, host) })
			t.Run("ungated", func(t *testing.T) { pastTheGate(t, host.Name) })
		})
	}
}

func heldByPerson(t *testing.T, host lab.Host) {
	name := host.Name
	placed := Exec(t, name, "sudo", "-u", "ops", "sudo", "kibo-agent", "hold", "--why", "disk swap", "--id", "disk")
	if !strings.Contains(placed, "ops holds this host since ") {
		t.Errorf("%s", placed)
	}
	answers(t, name, 0, "but closed: ops holds this host", "allow", "--for", "10m")
	refused(t, name, "disk swap (hold disk)")
	passes(t, name)
	answers(t, name, 4, "disk swap", "check", "--operation", "stop")
	answers(t, name, 4, `"code":"held"`, "run", "--key", "stop", "--operation", "stop", "--output", "json", "--", "true")
	answers(t, name, 0, "exit 0", "run", "--key", "start", "--operation", "start", "--", "true")
	if s := agentStatus(t, name); s.Code != gate.CodeHeld || len(s.Holds) != 1 || s.Holds[0].Who != "ops" || s.Holds[0].Since.IsZero() {
		t.Errorf("status: %+v", s)
	}
	// A person with nothing but a shell: whatever lies there says no.
	Exec(t, name, "sh", "-c", `echo 'hands off' >/var/lib/kibo-agent/holds/ann`)
	answers(t, name, 0, "still held: somebody holds this host", "release", "--id", "disk")
	answers(t, name, 4, "hold ann", "check", "--operation", "stop")
	// The same over a reboot and without a daemon.
	if err := Lab(t).Reboot(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	Try(t, name, "systemctl", "stop", "kibo-agent.service", "kibo-agent.socket")
	answers(t, name, 4, "hold ann", "check", "--operation", "stop")
	answers(t, name, 0, "released", "release", "--all")
	answers(t, name, 0, "open until", "check", "--operation", "stop")
	answers(t, name, 0, "closed", "close")
	answers(t, name, 4, "there is no", "check", "--operation", "stop")
}

// pastTheGate: a gated change is no news; one that goes past both hooks is reported until acknowledged, over a reboot
// too.
func pastTheGate(t *testing.T, host string) {
	Exec(t, host, "systemctl", "stop", "kibotos-node.service") // up again since the reboot
	if s := agentStatus(t, host); len(s.Ungated) != 0 {
		t.Errorf("after the agent came: %+v", s.Ungated)
	}
	Exec(t, host, "kibo-agent", "allow", "--for", "10m", "--package", "kibotos-node=0.1.4")
	Exec(t, host, "dpkg", "-i", nodeDebAt)
	if s := agentStatus(t, host); len(s.Ungated) != 0 {
		t.Errorf("after a gated change: %+v", s.Ungated)
	}
	Exec(t, host, "kibo-agent", "close")
	Exec(t, host, "mv", "/etc/dpkg/dpkg.cfg.d/kibo-agent", "/root/away")
	oldNode(t, host)
	Exec(t, host, "dpkg", "-i", "--force-downgrade", oldNodeDebAt)
	Exec(t, host, "mv", "/root/away", "/etc/dpkg/dpkg.cfg.d/kibo-agent")
	s := agentStatus(t, host)
	if len(s.Ungated) != 1 || s.Ungated[0].Package != "kibotos-node" || s.Ungated[0].Was != "0.1.4" || s.Ungated[0].Now != "0.1.2" {
		t.Fatalf("after a change past the gate: %+v", s.Ungated)
	}
	if again := agentStatus(t, host); len(again.Ungated) != 1 || !again.Ungated[0].Noticed.Equal(s.Ungated[0].Noticed) {
		t.Errorf("asked again: %+v", again.Ungated)
	}
	answers(t, host, 0, "acknowledged: kibotos-node went from 0.1.4 to 0.1.2 past the gate", "acknowledge")
	if s := agentStatus(t, host); len(s.Ungated) != 0 {
		t.Errorf("after acknowledging: %+v", s.Ungated)
	}
}
