package view

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with testdata/NAME.golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (make docs writes it anew):\n%s", file, diff)
	}
}

// screens are the views that have a golden file for each width.
func screens() map[string]func(Screen) error {
	return map[string]func(Screen) error{
		"plan":           func(s Screen) error { return s.Plan(rollingPlan()) },
		"plan-verbose":   func(s Screen) error { s.Verbose = true; return s.Plan(rollingPlan()) },
		"plan-nothing":   func(s Screen) error { return s.Plan(nothingPlan()) },
		"commands":       func(s Screen) error { return s.Commands(rollingPlan()) },
		"status":         func(s Screen) error { return s.Status(mixedStatus()) },
		"status-gates":   func(s Screen) error { return s.Gates(mixedStatus()) },
		"line":           func(s Screen) error { return s.Line("nothing to do: 节点 \x1b[2J") },
		"status-empty":   func(s Screen) error { return s.Status(Status{}) },
		"events":         func(s Screen) error { return observe(s, wholeWalk()) },
		"events-verbose": func(s Screen) error { s.Verbose = true; return observe(s, wholeWalk()) },
		"events-stopped": func(s Screen) error { return observe(s, stoppedWalk()) },
		"error": func(s Screen) error {
			return s.Error(fmt.Errorf("host node-a: cannot read facts: %w", os.ErrDeadlineExceeded), "kibo-rollout status -l node-a")
		},
	}
}

// folds names the views whose lines keep to the width. The others print lines to paste or to search by.
func folds(name string) bool {
	return strings.HasPrefix(name, "plan") || strings.HasPrefix(name, "status")
}

func TestGolden(t *testing.T) {
	for name, draw := range screens() {
		for _, width := range []int{40, 80, 200} {
			t.Run(fmt.Sprintf("%s.%d", name, width), func(t *testing.T) {
				var out bytes.Buffer
				if err := draw(Screen{Out: &out, Width: width}); err != nil {
					t.Fatal(err)
				}
				golden(t, fmt.Sprintf("%s.%d", name, width), out.Bytes())
				for _, l := range strings.Split(out.String(), "\n") {
					if strings.TrimRight(l, " ") != l {
						t.Errorf("spaces at the end of %q", l)
					}
					if folds(name) && cells(l) > width && !strings.HasPrefix(l, "next: ") {
						t.Errorf("%d cells wide: %q", cells(l), l)
					}
				}
			})
		}
	}
}

// A terminal of no size is 80 wide, and one of a few columns is drawn without a panic, wide characters included.
func TestWidthZero(t *testing.T) {
	for name, draw := range screens() {
		at := func(width int) string {
			var out bytes.Buffer
			if err := draw(Screen{Out: &out, Width: width}); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		for _, width := range []int{0, -1} {
			if at(width) != at(80) {
				t.Errorf("%s at width %d is not what it is at 80", name, width)
			}
		}
		for width := 1; width < 40; width++ {
			if at(width) == "" {
				t.Errorf("%s at width %d is empty", name, width)
			}
		}
	}
}

// Colour only adds escape sequences; without it there is not one, whatever the hosts said.
func TestColor(t *testing.T) {
	for name, draw := range screens() {
		var without, with bytes.Buffer
		if err := draw(Screen{Out: &without}); err != nil {
			t.Fatal(err)
		}
		if err := draw(Screen{Out: &with, Color: true}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsRune(without.String(), '\x1b') {
			t.Errorf("%s without colour has escape sequences", name)
		}
		if diff := cmp.Diff(without.String(), ansi.Strip(with.String())); diff != "" {
			t.Errorf("%s with colour says something else:\n%s", name, diff)
		}
		if name != "status-empty" && name != "line" && !strings.ContainsRune(with.String(), '\x1b') {
			t.Errorf("%s with colour has none", name)
		}
	}
}
