package pack_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
	"github.com/kibotos/kibo-rollout/internal/standin/pack/nfpmdeb"
	"pault.ag/go/debian/deb"
)

// packers writes a release's package in both ways.
func packers(t *testing.T, r standin.Release, binary []byte) map[string][]byte {
	t.Helper()
	var small, full bytes.Buffer
	if err := pack.WriteDeb(&small, r, "amd64", nil); err != nil {
		t.Fatal(err)
	}
	if err := nfpmdeb.Write(&full, r, "amd64", binary, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"small": small.Bytes(), "nfpm": full.Bytes()}
}

// proves K6, K7: control data names package, version and architecture, pre-releases written as Debian does
func TestDebs(t *testing.T) {
	for _, r := range standin.Catalogue() {
		for kind, data := range packers(t, r, []byte("binary")) {
			d, err := deb.Load(bytes.NewReader(data), "x.deb")
			if err != nil {
				t.Fatalf("%s %s %s: %v", kind, r.Part, r.Version, err)
			}
			c := d.Control
			if c.Package != r.Part.Package() || c.Version.String() != r.DebVersion() || c.Architecture.String() != "amd64" {
				t.Errorf("%s: got %s %s %s", kind, c.Package, c.Version, c.Architecture)
			}
			if strings.Contains(c.Version.String(), "-") || !strings.Contains(c.Description, "stand-in") {
				t.Errorf("%s: version %s, description %q", kind, c.Version, c.Description)
			}
		}
	}
}

func TestNothingMissing(t *testing.T) {
	for _, r := range standin.Catalogue() {
		for _, f := range pack.Contents(r, nil) {
			if len(f.Content) == 0 {
				t.Errorf("%s %s: %s is empty", r.Part, r.Version, f.Path)
			}
		}
	}
}

func TestReproducible(t *testing.T) {
	r := standin.Catalogue()[0]
	first, second := packers(t, r, []byte("binary")), packers(t, r, []byte("binary"))
	for kind := range first {
		if !bytes.Equal(first[kind], second[kind]) {
			t.Errorf("%s: packing twice gave different bytes", kind)
		}
	}
}

// proves K32: the runtime's files differ between versions exactly when the runtime does
func TestRuntimeFiles(t *testing.T) {
	contents := func(version string) map[string]string {
		parts, ok := standin.Find(version)
		if !ok {
			t.Fatalf("no version %s", version)
		}
		all := map[string]string{}
		for _, r := range parts {
			for _, f := range pack.Contents(r, nil) {
				if r.Part == release.Node && strings.HasPrefix(f.Path, standin.RuntimeDir+"/") {
					all[f.Path] = string(f.Content)
				}
			}
		}
		return all
	}
	base := contents("0.1.2")
	for version, differ := range map[string]bool{"0.1.4": false, "0.1.6": false, "0.1.5": true, "0.2.0": true} {
		same := 0
		for name, content := range contents(version) {
			if base[name] == content {
				same++
			}
		}
		if differ != (same == 0) || (!differ && same != len(base)) {
			t.Errorf("%s: %d of %d runtime files are those of 0.1.2", version, same, len(base))
		}
	}
}

// proves K52: no package script starts or restarts anything
func TestScriptsStartNothing(t *testing.T) {
	for _, p := range release.Parts() {
		scripts := pack.Scripts(p)
		if len(scripts) < 3 {
			t.Errorf("%s: %d scripts", p, len(scripts))
		}
		for _, s := range scripts {
			for _, verb := range []string{"systemctl start", "systemctl restart", "systemctl stop", "deb-systemd-invoke", "systemctl kill"} {
				if strings.Contains(s.Text, verb) {
					t.Errorf("%s %s: %s", p, s.Name, verb)
				}
			}
		}
	}
}
