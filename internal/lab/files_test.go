//go:build linux

package lab

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

var update = flag.Bool("update", false, "write golden files anew")

// fleet is a lab that exists only in memory.
func fleet(t *testing.T, dir, hosts string) *Lab {
	t.Helper()
	specs, err := ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	made := &Lab{Dir: dir, log: t.Logf, state: state{ID: labID(dir), Network: "127.0.77", Instances: 2, Version: "0.1.2"}}
	for i, spec := range specs {
		made.state.Hosts = append(made.state.Hosts, Host{HostSpec: spec, Address: address(made.state.Network, i+1), Port: sshPort})
	}
	return made
}

func TestClientFiles(t *testing.T) {
	made := fleet(t, "/lab", "ctrl=1,node=2,ctrl+gw=1")
	got := "# inventory.yml\n" + made.inventory(User) + "# inventory-password.yml\n" + made.inventory(PasswordUser) +
		"# ssh_config\n" + made.sshConfig() + "# /etc/hosts\n" + made.etcHosts()
	for _, host := range made.Hosts() {
		for _, file := range made.configuration(host) {
			got += "# " + host.Name + ":" + file.path + "\n" + file.text
		}
	}
	if *update {
		if err := os.WriteFile("testdata/clientfiles.golden", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/clientfiles.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("files differ from testdata/clientfiles.golden (- wanted, + got):\n%s", diff)
	}
}

func TestKeysStay(t *testing.T) {
	made := fleet(t, t.TempDir(), "node=2")
	if err := made.writeClientFiles(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(made.KnownHosts())
	if err != nil {
		t.Fatal(err)
	}
	if err := made.writeClientFiles(); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(made.KnownHosts())
	if err != nil || !slices.Equal(first, second) {
		t.Errorf("known_hosts changed from %q to %q %v", first, second, err)
	}
	info, err := os.Stat(made.Key())
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("private key: %v %v", info.Mode(), err)
	}
}

func TestKnownHostsLine(t *testing.T) {
	public, err := ensureKey(filepath.Join(t.TempDir(), "key"), "")
	if err != nil {
		t.Fatal(err)
	}
	key := string(ssh.MarshalAuthorizedKey(public))
	for port, want := range map[int]string{sshPort: "127.0.77.1 " + key, highPort: "[127.0.77.1]:22022 " + key} {
		if got := knownHostsLine(Host{Address: "127.0.77.1", Port: port}, public); got != want {
			t.Errorf("port %d: %q, want %q", port, got, want)
		}
	}
}

func TestStateRoundTrip(t *testing.T) {
	made := fleet(t, t.TempDir(), DefaultHosts)
	if err := made.writeState(); err != nil {
		t.Fatal(err)
	}
	read, err := readState(made.Dir)
	if err != nil || !same(read, made.state) {
		t.Errorf("read %+v %v, wrote %+v", read, err, made.state)
	}
	read.Hosts[0].Suite = "trixie"
	if same(read, made.state) {
		t.Error("a lab with another suite is taken for the same")
	}
}

func TestOwnDirRefusesWhatIsNoLab(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(dir); err == nil {
		t.Error("a directory with foreign files was taken for a lab")
	}
}

func TestReady(t *testing.T) {
	wanted := map[string]bool{"node-a": true, "node-b": true}
	for text, want := range map[string]bool{
		``:   false,
		`[]`: false,
		`[{"name":"node-a","state":"READY","instances":2},{"name":"node-b","state":"READY","instances":2},{"name":"x","state":"NOT-READY"}]`: true,
		`[{"name":"node-a","state":"READY","instances":2},{"name":"node-b","state":"NOT-READY","instances":2}]`:                              false,
		`[{"name":"node-a","state":"READY","instances":2},{"name":"node-b","state":"READY","instances":1}]`:                                  false,
	} {
		if got := ready(text, wanted, 2); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}
