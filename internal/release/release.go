// Package release knows Kibotos releases: parts, versions, release lines, and the
// .deb files of a target. Values only; reading of .debs is in deb.go.
package release

import "slices"

// Part is one of the programs that make up a Kibotos fleet.
type Part string

// The parts, in the order in which an upgrade takes them (K56: ctrl before gateways).
const (
	Ctrl Part = "ctrl"
	Node Part = "node"
	E2B  Part = "e2b"
	GW   Part = "gw"
)

// Parts lists every part in upgrade order.
func Parts() []Part { return []Part{Ctrl, Node, E2B, GW} }

// Valid reports whether p is a known part.
func (p Part) Valid() bool { return slices.Contains(Parts(), p) }

// Package is the Debian package that carries the part.
func (p Part) Package() string { return "kibotos-" + string(p) }

// Unit is the systemd service of the part.
func (p Part) Unit() string { return p.Package() + ".service" }

// Binary is the installed program of the part.
func (p Part) Binary() string { return "/usr/bin/" + p.Package() }

// Gateway reports whether p is one of the two gateways.
func (p Part) Gateway() bool { return p == E2B || p == GW }

// Config is the default path of the part's configuration file.
func (p Part) Config() string {
	if p.Gateway() {
		return "/etc/kibotos/" + string(p) + "/config.env"
	}
	return "/etc/kibotos/" + string(p) + "/config.toml"
}

// Deb is one package file on the operator's machine, read by its control data, never by its name (K6).
type Deb struct {
	Part         Part   `json:"part"`
	Package      string `json:"package"`
	Version      string `json:"version"`           // Debian version, e.g. "0.2.0~rc.1"
	Architecture string `json:"architecture"`      // "amd64", "arm64", "all"
	SHA256       string `json:"sha256"`            // lower-case hex of the whole file
	Size         int64  `json:"size"`              // bytes
	Installed    int64  `json:"installed"`         // bytes when unpacked, by its own word; 0 if it does not say
	Path         string `json:"-"`                 // where it is on the operator's machine
	File         string `json:"file"`              // base name
	Compression  string `json:"compression"`       // of the data member: "xz", "gz", "zst", … or "none"; dpkg before 1.21.18 cannot read "zst"
	Runtime      string `json:"runtime,omitempty"` // node only: RuntimeID of its md5sums; empty if it carries none (K32)
}

// Target is the release aimed for: a version and the .debs that bring it.
type Target struct {
	Version string `json:"version"` // SemVer without "v", e.g. "0.2.0-rc.1"
	Debs    []Deb  `json:"debs"`    // sorted by part order, then architecture
}

// Deb returns the package file for a part on an architecture.
func (t Target) Deb(p Part, arch string) (Deb, bool) {
	for _, d := range t.Debs {
		if d.Part == p && (d.Architecture == arch || d.Architecture == "all") {
			return d, true
		}
	}
	return Deb{}, false
}
