package plan

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
)

var update = flag.Bool("update", false, "write the golden files")

// target is 0.1.4 for amd64, all parts.
func target() release.Target {
	t := release.Target{Version: "0.1.4"}
	for i, p := range release.Parts() {
		t.Debs = append(t.Debs, release.Deb{
			Part: p, Package: p.Package(), Version: "0.1.4", Architecture: "amd64", Size: 1000,
			SHA256: strings.Repeat(fmt.Sprint(i+1), 64), File: p.Package() + "_0.1.4_amd64.deb",
		})
	}
	return t
}

// fleet is one host a part and two nodes, all on 0.1.2, without agents.
func fleet(parts ...[]release.Part) Input {
	in := Input{
		ID: "r-test", By: "ann@desk", Mode: Rolling, Why: "0.1.2 and 0.1.4 are on release line 0.1", Target: target(),
		AgentDebs: []release.Deb{{Package: "kibo-agent", Version: "1.0", Architecture: "amd64", SHA256: strings.Repeat("a", 64), File: "kibo-agent_1.0_amd64.deb"}},
	}
	var rows []checks.NodeRow
	for i, of := range parts {
		name := fmt.Sprintf("h%d", i+1)
		h := inventory.Host{Name: name, Parts: of, Login: inventory.Login{Address: name + ".example"}, Kibo: inventory.Kibo{
			NodeName: name, CLI: []string{"kibo"}, CLIOn: "ctrl", StageDir: "/var/lib/kibo-rollout/stage", StateDir: "/var/lib/kibo-rollout", Gate: "managed",
		}}
		f := checks.Facts{Host: name, Arch: checks.Known("amd64"), Agent: checks.Unknown[gate.Status](checks.ErrNoAgent)}
		for _, p := range of {
			f.Parts = append(f.Parts, checks.PartFacts{Part: p, Version: checks.Known("0.1.2")})
		}
		if h.Has(release.Node) {
			rows = append(rows, checks.NodeRow{Name: name, State: "READY", Release: "0.1.2", Instances: 2})
		}
		in.Hosts = append(in.Hosts, HostInput{h, f})
	}
	in.Nodes = checks.Known(rows)
	return in
}

func usual() Input {
	return fleet([]release.Part{release.Ctrl}, []release.Part{release.Node}, []release.Part{release.Node}, []release.Part{release.E2B}, []release.Part{release.GW})
}

// TestGolden holds whole plans as text: waves, blocks, steps, what makes a step needless and complete, and the very commands.
func TestGolden(t *testing.T) {
	allOnOne := fleet(release.Parts())
	migrate := usual()
	migrate.Migrate = true
	external := fleet([]release.Part{release.Ctrl}, []release.Part{release.Node})
	for i := range external.Hosts {
		external.Hosts[i].Host.Kibo.Gate = "external"
	}
	container := fleet([]release.Part{release.Ctrl}, []release.Part{release.Node})
	container.Hosts[0].Host.Kibo.Commands = map[release.Part]map[string][]string{release.Ctrl: {
		"stop": {"docker", "stop", "kibotos-ctrl"}, "start": {"docker", "start", "kibotos-ctrl"}, "install": {"ctrl-image", "--load", "{deb}"},
	}}
	canary := fleet([]release.Part{release.Ctrl}, []release.Part{release.Node}, []release.Part{release.Node}, []release.Part{release.Node})
	canary.Serial = 2
	for name, in := range map[string]Input{
		"rolling": usual(), "one-host": allOnOne, "migration": migrate, "external-gate": external, "container": container, "serial": canary,
		"no-nodes": fleet([]release.Part{release.Ctrl}), "no-hosts": fleet(),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".golden", text(p))
			again, err := Build(in)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := marshal(t, p), marshal(t, again); a != b {
				t.Error("the same input gave other bytes")
			}
		})
	}
}

func marshal(t *testing.T, p Plan) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", file, diff)
	}
}

func text(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s: %s\n", p.Mode, p.Target.Version, p.Why)
	for _, part := range []struct {
		name   string
		blocks []Block
	}{{"blocks", p.Blocks}, {"clean", p.Clean}} {
		fmt.Fprintf(&b, "== %s\n", part.name)
		for _, bl := range part.blocks {
			fmt.Fprintf(&b, "\nwave %d  %s  %s\n", bl.Wave, bl.ID, bl.Title)
			textSteps(&b, "  ", p.ID, bl.Steps)
			textSteps(&b, "  finally ", p.ID, bl.Finally)
		}
	}
	return b.String()
}

func textSteps(b *strings.Builder, indent, run string, steps []Step) {
	for _, st := range steps {
		fmt.Fprintf(b, "%s%s [%s] %s (%s) limit %s\n", indent, st.ID, st.Effect, st.Title, st.Rule, st.Limit)
		if st.If != "" {
			fmt.Fprintf(b, "%s    only if taken: %s of %s\n", indent, st.If, st.Of)
		}
		if st.Skip != nil {
			fmt.Fprintf(b, "%s    skip: %s\n", indent, textCond(*st.Skip))
		}
		for _, a := range st.Act {
			fmt.Fprintf(b, "%s    %s on %s: %s\n", indent, a.Verb, a.Host, textAction(run, a))
		}
		if st.Done != nil {
			fmt.Fprintf(b, "%s    done: %s\n", indent, textCond(*st.Done))
		}
		textSteps(b, indent+"  back ", run, st.Back)
	}
}

func textAction(run string, a Action) string {
	switch a.Verb {
	case Job:
		return JobCommand(run, a, 1).String()
	case Upload:
		return a.Deb.File + " to " + a.Path
	default:
		return strings.TrimSuffix(a.Command.String()+"   expect "+a.Expect, "   expect ")
	}
}

func textCond(c Cond) string {
	var of []string
	for _, d := range c.Of {
		of = append(of, textCond(d))
	}
	words := []string{string(c.Kind)}
	for _, w := range []string{c.Host, string(c.Part), c.Node, strings.Join(c.Nodes, ","), c.Package, c.Value} {
		if w != "" {
			words = append(words, w)
		}
	}
	if len(of) > 0 {
		words = append(words, "("+strings.Join(of, "; ")+")")
	}
	return strings.Join(words, " ")
}

// TestOrder proves K34 and K30: ctrl and its ready block come before any node, a gateway after ctrl.
// proves K34
// proves K30
func TestOrder(t *testing.T) {
	p, err := Build(usual())
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for _, b := range p.Blocks {
		at[b.ID] = b.Wave
	}
	for _, pair := range [][2]string{
		{"h1/prepare", "h1/ctrl"}, {"h1/ctrl", "h1/ready"}, {"h1/ready", "h2/node"}, {"h2/node", "h3/node"}, {"h1/ready", "h4/e2b"}, {"h1/ready", "h5/gw"},
		{"h5/gw", "h1/verify"},
	} {
		if at[pair[0]] >= at[pair[1]] {
			t.Errorf("%s (wave %d) is not before %s (wave %d)", pair[0], at[pair[0]], pair[1], at[pair[1]])
		}
	}
}

func TestRefusals(t *testing.T) {
	wrongArch := usual()
	wrongArch.Hosts[1].Facts.Arch = checks.Known("arm64")
	noArch := usual()
	noArch.Hosts[1].Facts.Arch = checks.Unknown[string](errors.New("no answer"))
	badStage := usual()
	badStage.Hosts[0].Host.Kibo.StageDir = "tmp"
	for want, in := range map[string]Input{
		"no kibotos-node package for arm64": wrongArch, "architecture is not known": noArch, "not an absolute path": badStage,
	} {
		if _, err := Build(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
