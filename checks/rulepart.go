package checks

import (
	"fmt"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func partRules() []rule {
	return []rule{
		{
			id: "package", title: "the part is installed whole", scope: perParts, needs: "Packages",
			verdict: "block unless dpkg says installed", remedy: "ssh HOST dpkg -s PACKAGE; correct the inventory if the host does not run this part",
			part: judgePackage,
		},
		{
			id: "hold", title: "the package is not held", scope: perParts, needs: "Packages",
			verdict: "block if held: apt-get would refuse after the stop", remedy: "ssh HOST sudo apt-mark unhold PACKAGE, and hold it again afterwards",
			part: func(_ Input, h HostInput, p PartFacts) []verdict {
				pkg, ok, err := h.Facts.pkg(p.Part.Package())
				switch {
				case err != nil || !ok:
					return nil // judgePackage says so
				case pkg.Held:
					return block(pkg.Name + " is held")
				}
				return pass(pkg.Name + " is not held")
			},
		},
		{
			id: "unit", title: "the service is in a state to start from", of: "K55", scope: perParts, root: true, needs: "Parts.Unit",
			verdict: "block if masked, failed, starting over and over or unknown to systemd; warn if stopped, or if it runs a replaced file",
			part:    func(in Input, _ HostInput, p PartFacts) []verdict { return judgeUnit(in, p) },
		},
		{
			id: "exec-override", title: "the gateway starts with its own command line", of: "K56", scope: perParts, root: true, needs: "Parts.Unit",
			verdict: "block if a drop-in overrides ExecStart of a gateway, warn for other parts",
			remedy:  "move the arguments to environment variables in the part's config.env, then: ssh HOST sudo systemctl revert UNIT",
			part: func(_ Input, _ HostInput, p PartFacts) []verdict {
				u, err := p.Unit.Get()
				switch {
				case err != nil:
					return nil // judgeUnit says so
				case u.ExecOverride && p.Part.Gateway():
					return block(u.Name + "'s ExecStart is overridden, but the gateway takes no arguments")
				case u.ExecOverride:
					return warn(u.Name + "'s ExecStart or whole unit file is overridden: the target's own will not take effect")
				}
				return pass(u.Name + " is as the package brings it")
			},
		},
	}
}

func judgePackage(_ Input, h HostInput, p PartFacts) []verdict {
	pkg, ok, err := h.Facts.pkg(p.Part.Package())
	switch {
	case err != nil:
		return unknown("whether "+p.Part.Package()+" is installed", err)
	case !ok:
		return block(p.Part.Package() + " is not installed")
	case pkg.State != "installed":
		return block(pkg.Name + " is " + pkg.State + ", not installed")
	}
	return pass(pkg.Name + " " + pkg.Version + " is installed")
}

// judgeUnit blocks on states that hide a fault. A run that goes on may find a unit that it stopped itself.
func judgeUnit(in Input, p PartFacts) []verdict {
	u, err := p.Unit.Get()
	if err != nil {
		return unknown("the state of "+p.Part.Unit(), err)
	}
	state := u.Active + " (" + u.Sub + ")"
	switch {
	case u.Load == "masked":
		return remedied(Block, u.Name+" is masked", "find out who masked it and why, then: ssh HOST sudo systemctl unmask UNIT")
	case u.Load != "loaded":
		return remedied(Block, u.Name+" is "+u.Load+" for systemd", "ssh HOST systemctl status UNIT")
	case u.Sub == "auto-restart":
		return remedied(Block, fmt.Sprintf("%s starts over and over (%d restarts, result %s)", u.Name, u.Restarts, u.Result),
			"ssh HOST journalctl -u UNIT -n 50")
	case u.Active == "failed" && in.Run != "":
		return remedied(Warn, u.Name+" is failed (result "+u.Result+"): the run takes it up from there", "ssh HOST journalctl -u UNIT -n 50")
	case u.Active == "failed":
		return remedied(Block, u.Name+" is failed (result "+u.Result+")",
			"ssh HOST journalctl -u UNIT -n 50; when the cause is dealt with: ssh HOST sudo systemctl reset-failed UNIT")
	case u.Running() && u.Stale:
		return remedied(Warn, u.Name+" runs a program whose file was replaced since it started", "ssh HOST systemctl status UNIT")
	case u.Running():
		return pass(u.Name + " is " + state)
	case u.Active == "inactive":
		return remedied(Warn, u.Name+" is stopped: it is replaced, and stays stopped", "ssh HOST systemctl status UNIT")
	}
	return remedied(Block, u.Name+" is "+state, "wait until it has settled: ssh HOST systemctl status UNIT")
}

func remedied(l Level, text, remedy string) []verdict {
	return []verdict{{level: l, text: text, remedy: remedy}}
}

// archs lists the architectures that a part of the target comes for.
func archs(t release.Target, p release.Part) string {
	list := ""
	for _, d := range t.Debs {
		if d.Part == p {
			if list != "" {
				list += ", "
			}
			list += d.Architecture
		}
	}
	return list
}
