package host

import (
	"bytes"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
)

func standinDeb(t testing.TB) []byte {
	t.Helper()
	list, _ := standin.Find("0.1.4")
	var b bytes.Buffer
	if err := pack.WriteDeb(&b, list[1], Arch, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// proves K6: a file that was cut off anywhere is no package.
func TestCutOffDeb(t *testing.T) {
	data := standinDeb(t)
	d, err := readDeb(data)
	if err != nil || d.control["Package"] != "kibotos-node" || d.control["Version"] != "0.1.4" || d.control["Architecture"] != Arch {
		t.Fatalf("got %+v, %v", d.control, err)
	}
	for n := range data {
		if _, err := readDeb(data[:n]); err == nil && n < len(data)-1 { // the last byte may be padding
			t.Fatalf("%d of %d bytes are taken for a package", n, len(data))
		}
	}
}

func FuzzReadDeb(f *testing.F) {
	data := standinDeb(f)
	f.Add(data)
	f.Add(data[:100])
	f.Add([]byte("!<arch>\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := readDeb(data)
		if err != nil {
			return
		}
		for _, e := range d.files {
			if e.name == "" || e.name[0] != '/' || bytes.Contains([]byte(e.name), []byte("/../")) {
				t.Errorf("a file is unpacked to %q", e.name)
			}
		}
	})
}
