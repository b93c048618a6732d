//go:build linux

package lab

import (
	"slices"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func TestParseHosts(t *testing.T) {
	tests := []struct {
		text string
		want string // name suite parts node-name, one host a line
	}{
		{DefaultHosts, "ctrl-1 bookworm ctrl \nnode-1 trixie node node-a\nnode-2 bookworm node node-b\nnode-3 trixie node node-c\n" +
			"e2b-1 bookworm e2b \ngw-1 trixie gw \n"},
		{"node", "node-1 bookworm node node-a\n"},
		{"ctrl+gw=1@trixie,gw=2", "ctrl-1 trixie ctrl+gw \ngw-1 trixie gw \ngw-2 bookworm gw \n"},
		{"node=1,node=1@bookworm", "node-1 bookworm node node-a\nnode-2 bookworm node node-b\n"},
	}
	for _, test := range tests {
		hosts, err := ParseHosts(test.text)
		var got strings.Builder
		for _, host := range hosts {
			parts := make([]string, 0, len(host.Parts))
			for _, part := range host.Parts {
				parts = append(parts, string(part))
			}
			got.WriteString(host.Name + " " + host.Suite + " " + strings.Join(parts, "+") + " " + host.NodeName + "\n")
		}
		if err != nil || got.String() != test.want {
			t.Errorf("%s: got %q %v, want %q", test.text, got.String(), err, test.want)
		}
	}
}

func TestParseHostsRefuses(t *testing.T) {
	for _, text := range []string{"", "vm=1", "node=0", "node=-1", "node=x", "node=251", "node=200,gw=51", "node@sid", "ctrl+ctrl", "node=1,", "node=1@"} {
		if hosts, err := ParseHosts(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, hosts)
		}
	}
}

func FuzzParseHosts(f *testing.F) {
	for _, text := range []string{DefaultHosts, "ctrl+gw=1@trixie,gw=2", "node=@", "=", "+"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := ParseHosts(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, host := range hosts {
			if seen[host.Name] || !slices.Contains(Suites(), host.Suite) || len(host.Parts) == 0 {
				t.Errorf("%q: host %+v", text, host)
			}
			if host.Has(release.Node) != (host.NodeName != "") {
				t.Errorf("%q: node name of %+v", text, host)
			}
			seen[host.Name] = true
		}
		if len(hosts) == 0 || len(hosts) > maxHosts {
			t.Errorf("%q: %d hosts", text, len(hosts))
		}
	})
}

func TestNodeNames(t *testing.T) {
	for n, want := range map[int]string{0: "node-a", 25: "node-z", 26: "node-aa", 51: "node-az", 52: "node-ba"} {
		if got := nodeName(n); got != want {
			t.Errorf("node %d: %s, want %s", n, got, want)
		}
	}
}

func TestLabPath(t *testing.T) {
	for _, path := range []string{"/", "/tmp/a:b", "/tmp/a,b", "/tmp/a b", `/tmp/a\b`} {
		if got, err := labPath(path); err == nil {
			t.Errorf("%q: got %q, want an error", path, got)
		}
	}
}
