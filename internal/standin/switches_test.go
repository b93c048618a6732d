package standin

import (
	"testing"
	"time"
)

func TestReadSwitch(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		content string
		want    int
	}{
		{"", 7}, {"\n", 7}, {"3", 3}, {"0", 0}, {"-1", 0},
		{"0.1.4", 7}, {"0.1.5", 0},
		{"until 1001", 7}, {"until 1000", 0}, {"2 until 1001", 2}, {"2 until 999", 0}, {"0.1.4 until 1001", 7},
	} {
		if got := readSwitch(c.content, "0.1.4", now, 7); got != c.want {
			t.Errorf("%q: got %d, want %d", c.content, got, c.want)
		}
	}
}

func FuzzReadSwitch(f *testing.F) {
	f.Add("2 until 1001")
	f.Add("0.1.4")
	f.Fuzz(func(t *testing.T, content string) {
		if n := readSwitch(content, "0.1.4", time.Unix(1000, 0), 1); n < 0 {
			t.Errorf("%q: %d", content, n)
		}
	})
}

func FuzzParseRelease(f *testing.F) {
	for _, r := range Catalogue() {
		f.Add(r.JSON())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := ParseRelease(data); err == nil && !r.Part.Valid() {
			t.Errorf("%q: part %q", data, r.Part)
		}
	})
}

func FuzzParseEnvFile(f *testing.F) {
	f.Add([]byte("# x\nKIBOTOS_CTRL=\"127.0.0.1:1\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for key := range ParseEnvFile(data) {
			if len(key) > len(data) {
				t.Errorf("%q: key %q", data, key)
			}
		}
	})
}

// proves K5, K64: a version reads at most two record formats, and the schemas of neighbours meet
func TestCatalogue(t *testing.T) {
	for _, r := range Catalogue() {
		if r.Writes-r.ReadsMin > 1 {
			t.Errorf("%s %s reads %d..%d", r.Part, r.Version, r.ReadsMin, r.Writes)
		}
		got, err := ParseRelease(r.JSON())
		if err != nil || got != r {
			t.Errorf("%s %s does not survive its file: %v %v", r.Part, r.Version, got, err)
		}
	}
}
