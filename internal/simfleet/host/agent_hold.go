package host

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// here is what the machine knows of itself when a window is judged.
func (m *Machine) here() gate.Here {
	h := gate.Here{Now: m.w.Now(), Holds: m.holds()}
	if id, err := m.fs.ReadFile(memfs.Cred{}, "/etc/machine-id"); err == nil {
		h.MachineID = strings.TrimSpace(string(id))
	}
	return h
}

// holds lists who holds the machine; a file that cannot be read is a hold as well.
func (m *Machine) holds() []gate.Hold {
	infos, err := m.fs.ReadDir(memfs.Cred{}, gate.HoldsPath)
	if err != nil {
		return nil
	}
	var all []gate.Hold
	for _, i := range infos {
		data, err := m.fs.ReadFile(memfs.Cred{}, path.Join(gate.HoldsPath, i.Name()))
		h, bad := gate.ParseHold(i.Name(), data)
		if err != nil || bad != nil {
			h = gate.Hold{ID: i.Name(), Who: "somebody", Why: "no reason can be read"}
		}
		all = append(all, h)
	}
	return all
}

func (m *Machine) agentHold(p *shell.Proc, o options) int {
	h := gate.Hold{ID: o.get("--id"), Who: orDefault(o.get("--by"), orDefault(p.Getenv("SUDO_USER"), "root")), Why: o.get("--why"), Since: m.w.Now().UTC().Truncate(time.Second)}
	if h.ID == "" {
		h.ID = h.Since.Format("20060102-150405")
	}
	if err := gate.CheckHoldID(h.ID); err != nil || h.Why == "" {
		return p.Fail(agentUsage, "hold needs --why and an --id that can be a file's name")
	}
	for _, there := range m.holds() {
		if there.ID == h.ID {
			h.Since = there.Since
		}
	}
	data, err := h.Text()
	if err == nil {
		err = m.fs.MkdirAll(memfs.Cred{}, gate.HoldsPath, 0o755)
	}
	if err == nil {
		err = m.place(memfs.Cred{}, path.Join(gate.HoldsPath, h.ID), data, 0o644)
	}
	if err != nil {
		return p.Fail(agentFailed, "cannot place hold: %v", err)
	}
	return answer(p, o, h, h.Words()+"\nnext: kibo-agent release --id "+h.ID)
}

func (m *Machine) agentRelease(p *shell.Proc, o options) int {
	gone, left := []gate.Hold{}, []gate.Hold{}
	there := m.holds()
	if len(there) > 1 && !o.has("--id") && !o.has("--all") {
		return p.Fail(agentFailed, "cannot tell which hold to release; name one with --id, or --all")
	}
	text := ""
	for _, h := range there {
		if o.has("--id") && o.get("--id") != h.ID {
			left = append(left, h)
			text += "still held: " + h.Words() + "\n"
			continue
		}
		if err := m.fs.RemoveAll(memfs.Cred{}, path.Join(gate.HoldsPath, h.ID)); err != nil {
			return p.Fail(agentFailed, "cannot release hold %s: %v", h.ID, err)
		}
		gone = append(gone, h)
		text = "released: " + h.Words() + "\n" + text
	}
	if len(gone) == 0 {
		text = "there was no such hold\n" + text
	}
	return answer(p, o, map[string]any{"released": gone, "left": left}, strings.TrimSuffix(text, "\n"))
}

func (m *Machine) agentRenew(p *shell.Proc, o options) int {
	lasts, err := time.ParseDuration(o.get("--for"))
	if err != nil || lasts < time.Second || o.get("--id") == "" {
		return p.Fail(agentUsage, "renew needs --id and --for")
	}
	f, err := m.allowFile(gate.DefaultPath)
	switch {
	case err != nil:
	case f.ID != o.get("--id"):
		err = gate.Deny(gate.CodeOtherWindow, "the window that is there is %q, not %q", f.ID, o.get("--id"))
	case f.RenewUntil == 0:
		err = gate.Deny(gate.CodeNoLease, "window %q is no lease", f.ID)
	}
	v := m.here().Decide(f, err, gate.Request{})
	if err != nil || !v.Open && v.Code != gate.CodeHeld {
		if err != nil {
			v = gate.Closed(err)
		}
		answer(p, o, v, "not renewed: "+v.Reason)
		return agentDenied
	}
	f.NotAfter = max(f.NotAfter, min(m.w.Now().Add(lasts).Unix(), f.RenewUntil))
	return m.putWindow(p, o, f)
}

// putWindow writes a window and says what the gate makes of it.
func (m *Machine) putWindow(p *shell.Proc, o options, f gate.AllowFile) int {
	data, err := json.Marshal(f)
	if err == nil {
		err = m.fs.MkdirAll(memfs.Cred{}, path.Dir(gate.DefaultPath), 0o755)
	}
	if err == nil {
		err = m.place(memfs.Cred{}, gate.DefaultPath, append(data, '\n'), 0o644)
	}
	if err != nil {
		return p.Fail(agentFailed, "cannot write allow-file: %v", err)
	}
	v, _ := m.Gate()
	until := time.Unix(f.NotAfter, 0).UTC().Format(time.RFC3339)
	return answer(p, o, struct {
		gate.Verdict
		Path   string         `json:"path"`
		Until  string         `json:"until"`
		Window gate.AllowFile `json:"window"`
	}{v, gate.DefaultPath, until, f}, fmt.Sprintf("%s, until %s", v.Reason, until))
}

// answer prints v or the text, as --output says.
func answer(p *shell.Proc, o options, v any, text string) int {
	if o.get("--output") == "json" {
		printJSON(p, v)
	} else {
		p.Printf("%s\n", text)
	}
	return 0
}
