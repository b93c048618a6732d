package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// proves Z2 and Z4: a window is swept from its last second on, and nothing else is.
func TestSweep(t *testing.T) {
	end := now().Unix() + 60
	for name, tc := range map[string]struct {
		now  int64
		text string
		want bool
	}{
		"a second before":   {end - 1, "", false},
		"at the end":        {end, "", true},
		"a second after":    {end + 1, "", true},
		"not JSON":          {end + 1, "{", false},
		"no end":            {end + 1, `{"notAfter":0}`, false},
		"longer than given": {end, `{"notAfter":1800000061}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t)
			if _, err := w.Place(t.Context(), gate.AllowFile{NotAfter: end}); err != nil {
				t.Fatal(err)
			}
			if tc.text != "" {
				if err := os.WriteFile(w.Path, []byte(tc.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			w.Now = func() time.Time { return time.Unix(tc.now, 0) }
			did, err := w.Sweep(t.Context())
			if err != nil || (did != "") != tc.want {
				t.Errorf("%q %v", did, err)
			}
			if _, err := os.Lstat(w.Path); os.IsNotExist(err) != tc.want {
				t.Errorf("the file: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(w.Path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	w := newWindow(t)
	if did, err := w.Sweep(t.Context()); did != "" || err != nil {
		t.Errorf("nothing to sweep: %q %v", did, err)
	}
}
