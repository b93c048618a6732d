package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kibotos/kibo-rollout/inventory"
)

// Hosts that run no part are left out of commands with a note; the one where the kibo command is run can still be dialed.
func TestFleet(t *testing.T) {
	const shared = `
kibo_ctrl: {hosts: {ctrl1: {kibo_cli_on: bastion}}}
kibo_node: {hosts: {node-a: , node-b: }}
web: {hosts: {web-1: , broken: {ansible_connection: local}, bastion: }}
`
	for _, c := range []struct {
		name, text, limit string
		all, hosts        []string
		note, err         string
	}{
		{
			name: "all", text: shared, limit: "all", all: []string{"ctrl1", "node-a", "node-b", "bastion"}, hosts: []string{"ctrl1", "node-a", "node-b"},
			note: "note: hosts web-1, broken, bastion left out: no part runs there\n",
		},
		{
			name: "one", text: shared, limit: "node-b,web-1", all: []string{"ctrl1", "node-a", "node-b", "bastion"}, hosts: []string{"node-b"},
			note: "note: host web-1 left out: no part runs there\n",
		},
		{name: "none", text: shared, limit: "broken", err: "cannot go on with host broken: none runs a part"},
		{name: "no fleet", text: "web: {hosts: {web-1: , web-2: }}\n", limit: "all", err: "cannot go on with hosts web-1, web-2: none runs a part"},
		{
			name: "unreachable caller", text: strings.Replace(shared, "bastion}", "broken}", 1), limit: "all",
			err: "cannot reach broken, where the kibo command is to be run",
		},
		{name: "refused", text: strings.Replace(shared, "bastion}", "local}", 1), limit: "node-a", err: "kibo_cli_on: local is not built yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv, err := inventory.Load([]string{"-"}, inventory.Options{Stdin: strings.NewReader(c.text)})
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			got, err := World{Err: &said}.fleet(inv, &fleetFlags{limit: c.limit})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || codeOf(err) != exitUsage {
					t.Errorf("%v with code %d", err, codeOf(err))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([][]string{c.all, c.hosts}, [][]string{hostNames(got.all), hostNames(got.hosts)}); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.note, said.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func hostNames(hosts []inventory.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}

// A program that makes an inventory and hangs ends when the operator asks to stop.
func TestInventoryProgramStops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var out, errs bytes.Buffer
	w := World{Out: &out, Err: &errs, Env: func(string) string { return "" }, Stop: stop}
	timer := time.AfterFunc(200*time.Millisecond, func() { close(stop) })
	defer timer.Stop()
	start := time.Now()
	if code := Main(t.Context(), w, []string{"inventory", "check", "-i", path}); code != exitInterrupted {
		t.Errorf("ended with %d: %s", code, errs.String())
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
