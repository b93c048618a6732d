package pack_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// bench runs maintainer scripts with every program replaced.
type bench struct {
	booted bool   // systemd is in charge
	active string // what systemctl show says of any unit; empty makes it fail
	check  uint8  // exit status of check-maintenance
	calls  []string
}

func (b *bench) exec(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		b.calls = append(b.calls, strings.Join(args, " "))
		switch {
		case args[0] == "systemctl" && args[1] == "show":
			if b.active == "" {
				return interp.ExitStatus(1)
			}
			_, err := interp.HandlerCtx(ctx).Stdout.Write([]byte(b.active + "\n"))
			return err
		case args[0] == "kibotos-node" && args[1] == "check-maintenance":
			return interp.ExitStatus(b.check)
		}
		return nil
	}
}

func (b *bench) stat(_ context.Context, name string, _ bool) (fs.FileInfo, error) {
	if name == "/run/systemd/system" && b.booted {
		return os.Stat("/")
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// run returns whether the script allowed the operation.
func (b *bench) run(t *testing.T, p release.Part, name string, args ...string) bool {
	t.Helper()
	for _, s := range pack.Scripts(p) {
		if s.Name != name {
			continue
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(s.Text), name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		runner, err := interp.New(interp.Params(append([]string{"--"}, args...)...), interp.StdIO(nil, &out, &out),
			interp.ExecHandlers(b.exec), interp.StatHandler(b.stat))
		if err != nil {
			t.Fatal(err)
		}
		err = runner.Run(t.Context(), file)
		if err != nil && !strings.Contains(out.String(), "refused") {
			t.Errorf("%s %s %v failed without a reason: %v %s", p, name, args, err, &out)
		}
		return err == nil
	}
	t.Fatalf("%s has no %s", p, name)
	return false
}

// proves K52, K55: node's package wants its service stopped, a gateway's wants it inactive and nothing else
func TestPreinst(t *testing.T) {
	for _, c := range []struct {
		active        string
		node, gateway bool
	}{
		{"inactive", true, true}, {"failed", true, false}, {"active", false, false}, {"activating", false, false},
		{"deactivating", false, false}, {"unknown", false, false}, {"", false, false},
	} {
		for _, operation := range []string{"install", "upgrade"} {
			b := &bench{booted: true, active: c.active}
			if got := b.run(t, release.Node, "preinst", operation, "0.1.2"); got != c.node {
				t.Errorf("node %s while %q: %v", operation, c.active, got)
			}
			for _, p := range []release.Part{release.E2B, release.GW} {
				if got := b.run(t, p, "preinst", operation, "0.1.2"); got != c.gateway {
					t.Errorf("%s %s while %q: %v", p, operation, c.active, got)
				}
			}
		}
	}
	if b := (&bench{}); !b.run(t, release.Node, "preinst", "install") || !b.run(t, release.GW, "preinst", "install") {
		t.Error("refused where no systemd runs")
	}
	if b := (&bench{booted: true, active: "active"}); !b.run(t, release.Node, "preinst", "abort-upgrade") {
		t.Error("refused to undo")
	}
}

// proves K51: removal asks the maintenance check, and the data plane ends only when it passed
func TestPrerm(t *testing.T) {
	passed := &bench{booted: true, active: "inactive"}
	if !passed.run(t, release.Node, "prerm", "remove") || len(passed.calls) != 2 || !strings.Contains(passed.calls[1], "end-dataplane") {
		t.Errorf("removal after a passed check: %q", passed.calls)
	}
	failed := &bench{booted: true, active: "inactive", check: 1}
	if failed.run(t, release.Node, "prerm", "remove") || len(failed.calls) != 1 {
		t.Errorf("removal after a failed check: %q", failed.calls)
	}
	upgrade := &bench{booted: true, active: "inactive", check: 1}
	if !upgrade.run(t, release.Node, "prerm", "upgrade", "0.1.4") || len(upgrade.calls) != 0 {
		t.Errorf("upgrade: %q", upgrade.calls)
	}
}
