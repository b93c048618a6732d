package release

import (
	"testing"
)

// proves K1 K2
func TestLine(t *testing.T) {
	for v, want := range map[string]string{
		"0.1.0":           "0.1",
		"v0.1.4":          "0.1",
		"0.2.0-rc.1":      "0.2",
		"1.10.3":          "1.10",
		"0.1.0-rc.1":      "0.1",
		"0.0.9":           "",
		"0.0.9-rc.1":      "",
		"0.3.0-alpha.1":   "",
		"0.3.0-beta.2":    "",
		"0.2.0-rc":        "",
		"0.2.0-rc.1.2":    "",
		"0.2.0-rc1":       "",
		"0.1.4+dirty":     "",
		"0.1.4-3-gabcdef": "",
		"0.1":             "",
		"":                "",
		"latest":          "",
	} {
		line, ok := Line(v)
		if line != want || ok != (want != "") {
			t.Errorf("Line(%q) = %q, %v; want %q", v, line, ok, want)
		}
	}
}

// proves K1 K2 K3 K5 K62
func TestModeFor(t *testing.T) {
	type builds = []Build
	for _, tc := range []struct {
		name string
		from builds
		to   Build
		want Mode // "": refused
	}{
		{"patch", builds{{"0.1.2", ""}}, Build{"0.1.4", ""}, Rolling},
		{"rc to release", builds{{"0.2.0-rc.1", ""}}, Build{"0.2.0", ""}, Rolling},
		{"mixed on the line", builds{{"0.1.2", ""}, {"0.1.4", ""}}, Build{"0.1.4", ""}, Rolling},
		{"back on the line", builds{{"0.1.4", ""}}, Build{"0.1.2", ""}, Rolling},
		{"another minor", builds{{"0.1.9", ""}}, Build{"0.2.0", ""}, StopTheWorld},
		{"another major", builds{{"0.9.0", ""}}, Build{"1.0.0", ""}, StopTheWorld},
		{"one host apart", builds{{"0.2.1", ""}, {"0.1.9", ""}}, Build{"0.2.2", ""}, StopTheWorld},
		{"alpha to alpha", builds{{"0.3.0-alpha.1", "a"}}, Build{"0.3.0-alpha.2", "b"}, StopTheWorld},
		{"alpha of another revision", builds{{"0.3.0-alpha.1", "a"}}, Build{"0.3.0-alpha.1", "b"}, StopTheWorld},
		{"alpha of unknown revision", builds{{"0.3.0-alpha.1", ""}}, Build{"0.3.0-alpha.1", ""}, StopTheWorld},
		{"alpha of the same revision", builds{{"0.3.0-alpha.1", "a"}}, Build{"0.3.0-alpha.1", "a"}, Rolling},
		{"alpha to release", builds{{"0.1.4-alpha.1", ""}}, Build{"0.1.4", ""}, StopTheWorld},
		{"0.0 to 0.1", builds{{"0.0.9", ""}}, Build{"0.1.0", ""}, StopTheWorld},
		{"0.0 to 0.2", builds{{"0.0.9", ""}}, Build{"0.2.0", ""}, ""},
		{"0.1.0-alpha to 0.2 rc", builds{{"0.1.0-alpha.1", ""}}, Build{"0.2.0-rc.1", ""}, ""},
		{"0.2 back to 0.1", builds{{"0.2.0", ""}}, Build{"0.1.9", ""}, ""},
		{"0.2 rc back to 0.1", builds{{"0.2.0-rc.1", ""}}, Build{"0.1.9", ""}, ""},
		{"nothing installed", nil, Build{"0.1.4", ""}, ""},
		{"no version", builds{{"latest", ""}}, Build{"0.1.4", ""}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, why, err := ModeFor(tc.from, tc.to)
			if got != tc.want || (err != nil) != (tc.want == "") || (err == nil && why == "") {
				t.Errorf("got %q, %q, %v; want %q", got, why, err, tc.want)
			}
		})
	}
}

// proves K7
func TestDebianMapping(t *testing.T) {
	for d, want := range map[string]string{
		"0.1.4":              "0.1.4",
		"0.2.0~rc.1":         "0.2.0-rc.1",
		"0.2.0~rc1":          "0.2.0-rc.1",
		"0.2.0-rc.1":         "0.2.0-rc.1",
		"1:0.2.0~rc.1-2":     "0.2.0-rc.1",
		"0.1.4-1":            "0.1.4",
		"0.1.4-1~bpo12+1":    "0.1.4",
		"0.3.0~alpha.1":      "0.3.0-alpha.1",
		"0.1.4+git20261130":  "0.1.4+git20261130",
		"0.1.4~bpo12+1":      "",
		"0.1":                "",
		"":                   "",
		"0.1.4 ":             "0.1.4",
		"0.1.4~rc.1~deb12u1": "",
	} {
		got, err := FromDebian(d)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("FromDebian(%q) = %q, %v; want %q", d, got, err, want)
		}
	}
	for _, v := range []string{"0.1.4", "0.2.0-rc.1", "0.3.0-alpha.12", "1.0.0+b1"} {
		d, err := ToDebian(v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := FromDebian(d); back != v || err != nil {
			t.Errorf("%s → %s → %s, %v", v, d, back, err)
		}
	}
}

// proves K7
func TestOrderAgrees(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		ok       bool
	}{
		{"0.1.2", "0.1.4", true},
		{"0.1.4", "0.1.2", true},
		{"0.2.0~rc.1", "0.2.0", true},
		{"0.2.0-rc.1", "0.2.0", false}, // dpkg: older; SemVer: newer
		{"0.2.0~rc.9", "0.2.0~rc.10", true},
		{"0.1.4-1", "0.1.4-2", true},  // packed again
		{"1:0.1.2", "0.1.4", false},   // an epoch that was dropped
		{"0.1.4", "nonsense!", false}, // not comparable
	} {
		if err := OrderAgrees(tc.from, tc.to); (err == nil) != tc.ok {
			t.Errorf("OrderAgrees(%q, %q) = %v", tc.from, tc.to, err)
		}
	}
}

func FuzzVersions(f *testing.F) {
	for _, s := range []string{"0.1.4", "v0.2.0-rc.1", "1:0.2.0~rc1-1", "0.2.0-rc.1", "", "0.1.4+x"} {
		f.Add(s, "0.1.4")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if line, ok := Line(a); ok != (line != "") {
			t.Errorf("Line(%q) = %q, %v", a, line, ok)
		}
		if SameLine(a, b) != SameLine(b, a) {
			t.Errorf("SameLine(%q, %q) depends on the order", a, b)
		}
		if v, err := FromDebian(a); err == nil {
			if _, err := ParseVersion(v); err != nil {
				t.Errorf("FromDebian(%q) = %q, which is no version", a, v)
			}
			if d, err := ToDebian(v); err != nil {
				t.Errorf("ToDebian(%q): %v", v, err)
			} else if back, err := FromDebian(d); err != nil || !SameVersion(back, v) {
				t.Errorf("%q → %q → %q → %q, %v", a, v, d, back, err)
			}
		}
		_ = OrderAgrees(a, b)
	})
}
