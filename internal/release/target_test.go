package release

import (
	"slices"
	"strings"
	"testing"
)

func debFor(part Part, version, arch, sum string) Deb {
	return Deb{
		Part: part, Package: part.Package(), Version: version, Architecture: arch,
		SHA256: sum, File: part.Package() + "-" + sum + ".deb",
	}
}

// proves K6 K7
func TestNewTarget(t *testing.T) {
	ctrl, node := debFor(Ctrl, "0.1.4", "amd64", "c1"), debFor(Node, "0.1.4", "amd64", "n1")
	for _, tc := range []struct {
		name    string
		version string
		debs    []Deb
		want    string // version; or, with a "!", a part of the error
	}{
		{"all right", "0.1.4", []Deb{node, ctrl}, "0.1.4"},
		{"with v", "v0.1.4", []Deb{node}, "0.1.4"},
		{"version of the files", "", []Deb{node, ctrl}, "0.1.4"},
		{"pre-release", "0.2.0-rc.1", []Deb{debFor(Node, "0.2.0~rc.1", "amd64", "n2")}, "0.2.0-rc.1"},
		{"two architectures", "0.1.4", []Deb{node, debFor(Node, "0.1.4", "arm64", "n2")}, "0.1.4"},
		{"same file twice", "0.1.4", []Deb{node, node}, "0.1.4"},
		{"older neighbour", "0.1.4", []Deb{node, debFor(Node, "0.1.2", "amd64", "n0")}, "0.1.4"},
		{"none", "0.1.4", nil, "!no .deb"},
		{"other version", "0.1.4", []Deb{ctrl, debFor(Node, "0.1.2", "amd64", "n0")}, "!kibotos-node-n0.deb: control data says version 0.1.2, but 0.1.4"},
		{"two contents", "0.1.4", []Deb{node, debFor(Node, "0.1.4", "amd64", "n9")}, "!different contents"},
		{"all and one", "0.1.4", []Deb{node, debFor(Node, "0.1.4", "all", "n9")}, "!all architectures"},
		{"no part", "0.1.4", []Deb{node, {Package: "hello", Version: "2.10-3", File: "hello.deb"}}, `!hello.deb: package "hello"`},
		{"several versions", "", []Deb{node, debFor(Ctrl, "0.1.2", "amd64", "c0")}, "!0.1.2, 0.1.4"},
		{"no version at all", "latest", []Deb{node}, "!latest"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := NewTarget(tc.version, tc.debs)
			if part, refused := strings.CutPrefix(tc.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q", err, part)
				}
				return
			}
			if err != nil || got.Version != tc.want {
				t.Errorf("got %q, %v", got.Version, err)
			}
		})
	}
}

func TestTargetDigest(t *testing.T) {
	ctrl, node := debFor(Ctrl, "0.1.4", "amd64", "c1"), debFor(Node, "0.1.4", "amd64", "n1")
	a, err := NewTarget("0.1.4", []Deb{node, ctrl})
	if err != nil {
		t.Fatal(err)
	}
	if a.Debs[0].Part != Ctrl {
		t.Error("debs are not in part order")
	}
	renamed := slices.Clone(a.Debs)
	renamed[0].File, renamed[0].Path = "x.deb", "/elsewhere/x.deb"
	b, err := NewTarget("", []Deb{renamed[1], renamed[0]})
	if err != nil || a.Digest() != b.Digest() {
		t.Errorf("the digest depends on names or order: %v", err)
	}
	renamed[0].SHA256 = "c2"
	c, err := NewTarget("", renamed)
	if err != nil || a.Digest() == c.Digest() {
		t.Errorf("the digest does not depend on contents: %v", err)
	}
	if name := a.StageName(); name != "0.1.4-"+a.Digest()[:8] {
		t.Errorf("stage name %q", name)
	}
}
