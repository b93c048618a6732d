package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/plan"
	"github.com/kibotos/kibo-rollout/run"
)

// broken is a terminal that went away; with panics set it is worse.
type broken struct{ panics bool }

func (b broken) Write([]byte) (int, error) {
	if b.panics {
		panic("the terminal burns")
	}
	return 0, errors.New("no such terminal")
}

// A rendering fault never ends a walk, and everywhere else it is an error.
func TestBrokenTerminal(t *testing.T) {
	for _, b := range []broken{{}, {panics: true}} {
		if err := observe(Screen{Out: b}, wholeWalk()); err != nil {
			t.Error(err)
		}
	}
	JSONEvents{Out: broken{}}.Observe(run.Event{})
	for name, err := range map[string]error{
		"plan":   Screen{Out: broken{}}.Plan(rollingPlan()),
		"status": Screen{Out: broken{}}.Status(Status{}),
		"json":   JSON(broken{}, mixedStatus()),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Steps that run at the same time have a line each when they end; what comes in between starts a line of its own.
func TestParallelSteps(t *testing.T) {
	var out bytes.Buffer
	if err := observe(Screen{Out: &out}, []run.Event{
		{Kind: run.StepStarted, Step: "a", Host: "a", Title: "stop"},
		{Kind: run.StepStarted, Step: "b", Host: "b", Title: "stop"},
		{Kind: run.StepDone, Step: "a", Host: "a", Title: "stop"},
		{Kind: run.StepDone, Step: "b", Host: "b", Title: "stop"},
	}); err != nil {
		t.Fatal(err)
	}
	want := "12:00:01  a  stop … done\n12:00:06  b  stop … done\n"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// proves K41: one VM that was another process at any time is told, whatever is said of it later.
func TestContinuityStaysBroken(t *testing.T) {
	vm := func(same bool) run.Event {
		return run.Event{Kind: run.Continuity, Host: "a", VMMs: []run.VMMProof{{Unit: "vm", Before: "1", After: "2", Same: same}}}
	}
	for _, order := range [][]bool{{true, false}, {false, true}} {
		var out bytes.Buffer
		if err := observe(Screen{Out: &out}, []run.Event{vm(order[0]), vm(order[1]), {Kind: run.RunDone}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "these are not:") || strings.Contains(out.String(), "every VMM") {
			t.Errorf("%v: %s", order, out.String())
		}
	}
}

// proves K4: several versions on one release line are a legal mixture, on two lines they are not.
func TestMixture(t *testing.T) {
	for name, c := range map[string]struct {
		versions       []string
		mixed, oneLine bool
	}{
		"none":                  {nil, false, true},
		"one":                   {[]string{"0.1.4"}, false, true},
		"two of one line":       {[]string{"0.1.4", "0.1.2", "0.1.4"}, true, true},
		"candidate and release": {[]string{"0.2.0-rc.1", "0.2.0"}, true, true},
		"two lines":             {[]string{"0.1.4", "0.2.0"}, true, false},
		"alpha is on no line":   {[]string{"0.3.0-alpha.1", "0.3.0"}, true, false},
	} {
		var machines []Machine
		for _, v := range c.versions {
			f := checks.Facts{Parts: []checks.PartFacts{partFacts(release.Node, v, "active")}}
			machines = append(machines, Machine{Name: v, Parts: []release.Part{release.Node}, Facts: f})
		}
		st := NewStatus(machines, checks.Known([]checks.NodeRow{}))
		if st.Mixed != c.mixed || st.OneLine != c.oneLine {
			t.Errorf("%s: mixed %v, one line %v", name, st.Mixed, st.OneLine)
		}
	}
}

// The documents are valid JSON, say the same as the table, and hold nothing that a terminal would obey.
func TestJSON(t *testing.T) {
	st := mixedStatus()
	st.Hosts[0].Problems = []string{"\x1b[2J \u202e \u009b \x7f \U000e0041 节点 <&>"}
	var out bytes.Buffer
	if err := JSON(&out, st); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && !shows(r) {
			t.Errorf("%q came through", r)
		}
	}
	if !strings.Contains(out.String(), "节点 <&>") {
		t.Error("harmless text was escaped")
	}
	var back Status
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Hosts[0].Problems[0] != st.Hosts[0].Problems[0] {
		t.Errorf("%q", back.Hosts[0].Problems[0])
	}
	out.Reset()
	if err := JSONLine(&out, rollingPlan()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 1 || !json.Valid(out.Bytes()) {
		t.Error("not one line of JSON")
	}
}

// Unknown is shown as unknown: a finding without a level blocks.
func TestFindingWithoutLevel(t *testing.T) {
	var out bytes.Buffer
	if err := (Screen{Out: &out}).Findings([]checks.Finding{{Check: "x", Text: "nobody judged it"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "unknown  nobody judged it [x]") {
		t.Error(out.String())
	}
}

func TestAmounts(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ms", 99 * time.Millisecond: "99ms", 320 * time.Millisecond: "0.3s", 42 * time.Second: "42s", 185 * time.Second: "3m05s",
		127 * time.Minute: "2h07m", -time.Minute: "-1m00s", 59*time.Minute + 59*time.Second + 999*time.Millisecond: "59m59s",
	} {
		if got := took(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12_345_678: "12.3 MB", 2_000_000_000: "2.0 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// bigPlan is a fleet of n nodes.
func bigPlan(n int) plan.Plan {
	p := plan.Plan{ID: "big", Mode: plan.Rolling, Target: target()}
	for i := range n {
		host := fmt.Sprintf("node-%05d", i)
		p.Hosts = append(p.Hosts, hostOf(host, "10.0.0.1", 3, "0.1.2", release.Node))
		p.Blocks = append(p.Blocks, nodeBlock(host, i+1))
		p.Clean = append(p.Clean, cleanBlock(host))
	}
	return p
}

func BenchmarkPlan10000(b *testing.B) {
	p := bigPlan(10_000)
	for b.Loop() {
		if err := (Screen{Out: io.Discard}).Plan(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWalk10000(b *testing.B) {
	p := bigPlan(10_000)
	events := []run.Event{{Kind: run.RunStarted, Plan: &p}}
	for _, block := range p.Blocks {
		events = append(events, run.Event{Kind: run.BlockStarted, Block: block.ID, Host: block.Host})
		for _, st := range block.Steps {
			events = append(events, step(block.ID, st.ID, block.Host)...)
		}
		events = append(events, run.Event{Kind: run.BlockDone, Block: block.ID, Host: block.Host},
			run.Event{Kind: run.Continuity, Host: block.Host, VMMs: []run.VMMProof{{Unit: "vm", Before: "1", After: "1", Same: true}}})
	}
	events = append(events, run.Event{Kind: run.RunDone})
	for b.Loop() {
		if err := observe(Screen{Out: io.Discard}, events); err != nil {
			b.Fatal(err)
		}
	}
}
