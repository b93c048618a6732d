// Package pack knows what is in the packages of the stand-in Kibotos, and writes small valid .debs of it. The packages
// for real hosts are written by nfpmdeb from the same contents.
package pack

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

//go:embed files
var files embed.FS

// File is one file of a package.
type File struct {
	Path     string // absolute
	Mode     fs.FileMode
	Content  []byte
	Conffile bool   // dpkg keeps an operator's changes
	Link     string // packers that write links may put a link to this name in place of Content
}

// Script is one maintainer script.
type Script struct {
	Name string // preinst, postinst, prerm, postrm
	Text string
}

// Placeholder is a program that only says that it is none: what a simulated fleet has in place of the real binary.
func Placeholder(program string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\necho '%s: a placeholder of the stand-in, runs only in a simulated fleet' >&2\nexit 70\n", program)
}

// Contents lists the files of a part's package, sorted by path. binary is the program of the stand-in; nil gives
// placeholders. The VM runtime is the same bytes in every version with the same runtime (K32).
func Contents(r standin.Release, binary []byte) []File {
	p := r.Part
	program := func(name string) File {
		content := binary
		if content == nil {
			content = Placeholder(name)
		}
		return File{Path: "/usr/bin/" + name, Mode: 0o755, Content: content}
	}
	unit, doc := p.Package()+".service", p.Package()+": stand-in for tests of upgrades, not the real Kibotos.\n"
	list := []File{
		program(p.Package()),
		{Path: standin.TraitsPath("/usr/bin", p), Mode: 0o644, Content: r.JSON()},
		{Path: "/usr/lib/systemd/system/" + unit, Mode: 0o644, Content: embedded(unit)},
		{Path: "/usr/share/doc/" + p.Package() + "/README", Mode: 0o644, Content: []byte(doc)},
		{Path: p.Config(), Mode: 0o644, Content: embedded(configName(r)), Conffile: true},
	}
	switch p {
	case release.Ctrl:
		list = append(list, File{Path: standin.KiboConfig, Mode: 0o644, Content: embedded("kibo.config"), Conffile: true})
		kibo := program("kibo")
		if binary != nil {
			kibo.Link = p.Package()
		}
		list = append(list, kibo)
	case release.Node:
		for _, f := range standin.RuntimeFiles(r.Runtime) {
			list = append(list, File{Path: path.Join(standin.RuntimeDir, f.Name), Mode: f.Mode, Content: f.Content})
		}
	case release.E2B, release.GW:
	}
	slices.SortFunc(list, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func configName(r standin.Release) string {
	if r.Part == release.Node {
		return fmt.Sprintf("node.config.%d", r.ConfigForm)
	}
	return string(r.Part) + ".config"
}

// Scripts lists the maintainer scripts of a part's package. None of them starts or restarts a service (K52).
func Scripts(p release.Part) []Script {
	var list []Script
	for _, name := range []string{"preinst", "postinst", "prerm", "postrm"} {
		if data, err := files.ReadFile("files/" + string(p) + "." + name); err == nil {
			list = append(list, Script{Name: name, Text: string(data)})
		}
	}
	return list
}

// FileName is the usual name of a package file; nothing may trust it (K6).
func FileName(r standin.Release, arch string) string {
	return fmt.Sprintf("%s_%s_%s.deb", r.Part.Package(), r.DebVersion(), arch)
}

// Description is the package description; it says that this is a stand-in.
func Description(p release.Part) string {
	return p.Package() + " (stand-in)\n Stand-in for " + p.Package() + ": obeys the rules of an upgrade, is not the real Kibotos."
}

// Maintainer is the package maintainer.
const Maintainer = "kibo-rollout <kibo-rollout@localhost>"

// Depends lists the packages that a part's package needs.
func Depends(p release.Part) []string {
	if p == release.Ctrl {
		return []string{"passwd"}
	}
	return nil
}

// embedded reads a compiled-in file; a test holds that none is missing.
func embedded(name string) []byte {
	data, _ := files.ReadFile("files/" + name)
	return data
}
