package checks

import (
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func versionRules() []rule {
	return []rule{
		{
			id: "deb", title: "the target has a package for the part on the host's architecture", of: "K6", scope: perParts, needs: "Arch, the target",
			verdict: "block if there is none, or if the host's dpkg cannot read it",
			remedy:  "put the .deb for this part and architecture beside the others and name the directory with --debs",
			part:    judgeDeb,
		},
		{
			id: "installed-version", title: "package and program agree on the installed version", of: "K6 K7", scope: perParts, needs: "Packages, Parts.Version",
			verdict: "block if they differ, or if dpkg and SemVer disagree on which of installed and target is newer",
			remedy:  "ssh HOST dpkg -V PACKAGE",
			part:    judgeInstalled,
		},
		{
			id: "downgrade", title: "the target is not older than what is installed", of: "K7 K33", scope: perParts, needs: "Packages, the target",
			verdict: "block if dpkg calls the target older: an upgrade never goes back",
			remedy:  "take the newer .debs, or leave the host out with -l",
			part:    judgeDowngrade,
		},
		{
			id: "runtime", title: "whether the VM runtime changes", of: "K32", scope: perParts, needs: "Parts.Runtime, the target",
			verdict: "warn if it changes, or if nobody can tell",
			remedy:  "publish the Platform only after all nodes are replaced; nodes cannot go back to before the change",
			part:    judgeRuntime,
		},
	}
}

func judgeDeb(in Input, h HostInput, p PartFacts) []verdict {
	arch, err := h.Facts.Arch.Get()
	if err != nil {
		return unknown("the host's architecture", err)
	}
	d, ok := in.Target.Deb(p.Part, arch)
	switch {
	case !ok && archs(in.Target, p.Part) == "":
		return block("the target " + in.Target.Version + " has no " + p.Part.Package())
	case !ok:
		return block(fmt.Sprintf("the target has %s for %s, not for the host's %s", p.Part.Package(), archs(in.Target, p.Part), arch))
	}
	if os, err := h.Facts.OS.Get(); err == nil && d.Compression == "zst" && oldDpkg(os) {
		return block(d.File + " is packed with zstd, which the dpkg of " + os + " cannot read")
	}
	return pass(d.File + " fits the host")
}

// oldDpkg knows the Debian releases whose dpkg is before 1.21.18.
func oldDpkg(os string) bool {
	for _, name := range []string{"Debian GNU/Linux 9", "Debian GNU/Linux 10", "Debian GNU/Linux 11"} {
		if strings.HasPrefix(os, name) {
			return true
		}
	}
	return false
}

// judgeDowngrade keeps a service from being stopped for an install that apt refuses.
func judgeDowngrade(in Input, h HostInput, p PartFacts) []verdict {
	pkg, ok, err := h.Facts.pkg(p.Part.Package())
	arch, noArch := h.Facts.Arch.Get()
	if err != nil || noArch != nil || !ok || pkg.State != "installed" {
		return nil // others say so
	}
	d, ok := in.Target.Deb(p.Part, arch)
	if !ok {
		return nil
	}
	order, err := release.CompareDebian(pkg.Version, d.Version)
	switch {
	case err != nil:
		return block(printable(err.Error()))
	case order > 0:
		return block(fmt.Sprintf("%s is %s, newer than the target's %s", pkg.Name, printable(pkg.Version), d.Version))
	}
	return pass(pkg.Name + " is not newer than the target")
}

func judgeInstalled(in Input, h HostInput, p PartFacts) []verdict {
	pkg, ok, err := h.Facts.pkg(p.Part.Package())
	if err != nil || !ok || pkg.State != "installed" {
		return nil // judgePackage says so
	}
	program, err := p.Version.Get()
	if err != nil {
		return unknown("the version of the installed "+p.Part.Binary(), err)
	}
	byPackage, err := release.FromDebian(pkg.Version)
	if err != nil {
		return block(printable(err.Error()))
	}
	if !release.SameVersion(byPackage, program) {
		return block(fmt.Sprintf("package %s is %s, but %s says %s", pkg.Name, pkg.Version, p.Part.Binary(), program))
	}
	arch, err := h.Facts.Arch.Get()
	if err != nil {
		return nil // judgeDeb says so
	}
	if d, ok := in.Target.Deb(p.Part, arch); ok {
		if err := release.OrderAgrees(pkg.Version, d.Version); err != nil {
			return []verdict{{level: Block, text: printable(err.Error()), remedy: "have the package built with ~ before its pre-release, as in 0.2.0~rc.1"}}
		}
	}
	return pass("package and program are both " + program)
}

func judgeRuntime(in Input, h HostInput, p PartFacts) []verdict {
	if p.Part != release.Node {
		return nil
	}
	arch, err := h.Facts.Arch.Get()
	if err != nil {
		return nil // judgeDeb says so
	}
	d, ok := in.Target.Deb(p.Part, arch)
	if !ok {
		return nil // judgeDeb says so
	}
	have, err := p.Runtime.Get()
	switch {
	case err != nil:
		return warn("whether the target brings another VM runtime is not known, so take it as a change: " + printable(err.Error()))
	case d.Runtime == "":
		return warn("whether the target brings another VM runtime is not known, so take it as a change: " + d.File + " lists no checksums")
	case d.Runtime != have:
		return warn("the target brings another VM runtime: no node goes back to before it, and its Platform is published only after the last node")
	}
	return pass("the VM runtime stays the same")
}
