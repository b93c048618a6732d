package inventory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limits are selections that Ansible and we take; testdata/limits.json has the hosts that ansible chose for each.
func limits() []string {
	return []string{
		"all", "*", "kibo_node", "rack1", "rack1,kibo_ctrl", "rack1:kibo_ctrl", " rack2 , ctrl1 ", "kibo_node:&kibo_gw", "kibo_node:!rack2",
		"!kibo_node", "!kibo_node,!kibo_gw", "&rack1", "all:!rack1:!rack2", "node-[1:3]", "node-*", "node-?", "node-[24]", "rack*", "kibo_*:!kibo_gw",
		"rack1[0]", "rack1[-1]", "rack1[1:2]", "rack1[1:]", "kibo_node[0]", "kibo_node[2:5]", "rack*[0:1]", "~node-[12]", "~(gw|ctrl).*", "~rack", "!~node-[0-9]$",
		"~node.*:!node-1", "node-[!1]", "node-1.ex", "node-1.*", "2001:db8::5", "10.0.0.5", "10.0.0.*", "ungrouped", "lonely,!lonely,node-3",
		"kibo_gw,rack1", "gw-a:gw-b:node-3", "node-[a-z0-3]", "*-1*", "@testdata/limit.txt", "@testdata/limit.txt,!node-2", "[ng]*:&rack2", "*[0]", "node-[13-5]*",
	}
}

func TestLimitsLikeAnsible(t *testing.T) {
	inv := load(t, "testdata/limits.yml")
	data, err := os.ReadFile("testdata/limits.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for _, limit := range limits() {
		got, err := selected(inv, limit)
		if err != nil {
			got = []string{}
		}
		if len(want[limit]) == 0 && err != nil {
			continue // Ansible runs nothing and says so in a warning; here that is an error
		}
		slices.Sort(got)
		sorted := slices.Sorted(slices.Values(want[limit]))
		if d := cmp.Diff(sorted, got); d != "" {
			t.Errorf("%q (-ansible +ours): %v\n%s", limit, err, d)
		}
	}
}

func selected(inv *Inventory, limit string) ([]string, error) {
	hosts, err := inv.Select(limit)
	out := []string{}
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out, err
}

// The order is the inventory's, whatever the order in the limit.
func TestSelectOrder(t *testing.T) {
	inv := load(t, "testdata/limits.yml")
	got, err := selected(inv, "node-7,gw-a,node-2,ctrl1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ctrl1", "gw-a", "node-2", "node-7"}, got); d != "" {
		t.Error(d)
	}
}

// An empty selection, or an element that matches nothing, is never "all" and never less than was asked for.
func TestSelectRefuses(t *testing.T) {
	inv := load(t, "testdata/limits.yml")
	none := filepath.Join(t.TempDir(), "none")
	write(t, none, "\n# nobody\n\n")
	for limit, want := range map[string]string{
		"":                     "is empty",
		"@" + none:             "names none",
		"@/no/such":            "no such file",
		"node-1,@" + none:      "names none",
		"empty":                "group without hosts",
		"!empty":               "group without hosts",
		"node-1,!nobody":       `"nobody"`,
		"node-1,&nobody":       `"nobody"`,
		"rack1[9]":             "not there",
		"rack1[-9]":            "not there",
		"rack1[7:9]":           "not there",
		"~(":                   "no pattern",
		"~(?=x)":               "look-around",
		"rack1:&rack2":         "leaves no host",
		"kibo_nod":             "did you mean kibo_node?",
		"localhost":            "matches no host",
		"node-1,&":             "is empty",
		"!":                    "is empty",
		"NODE-1":               "matches no host",
		"rack1,node-1.exx":     "did you mean node-1.ex?",
		"node-1;rm":            "matches no host",
		"[":                    "is empty",
		strings.Repeat("[", 9): "is empty",
	} {
		if got, err := selected(inv, limit); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", limit, got, err, want)
		}
	}
}

func FuzzSelect(f *testing.F) {
	for _, l := range limits() {
		if l[0] != '@' {
			f.Add(l)
		}
	}
	f.Add("~(a|b")
	f.Add("a[0:99999999999999999999]")
	inv, err := Load([]string{"testdata/limits.yml"}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	all := len(inv.Hosts())
	f.Fuzz(func(t *testing.T, limit string) {
		if strings.Contains(limit, "@") {
			return // names files of this machine
		}
		hosts, err := inv.Select(limit)
		if (err == nil) != (len(hosts) > 0) || len(hosts) > all {
			t.Fatalf("%q: %d hosts, %v", limit, len(hosts), err)
		}
		if strings.TrimSpace(limit) == "" && err == nil {
			t.Fatalf("an empty limit selected %d hosts", len(hosts))
		}
	})
}
