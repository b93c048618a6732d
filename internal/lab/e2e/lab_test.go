//go:build lab && linux

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// TestLab proves that the lab is what the other tests take it for.
func TestLab(t *testing.T) {
	Fresh(t)
	for _, host := range Lab(t).Hosts() {
		t.Run(host.Name, func(t *testing.T) {
			if got := Exec(t, host.Name, "systemctl", "is-system-running"); got != "running" {
				t.Errorf("systemd says %q", got)
			}
			for line, want := range map[string]string{
				"id -un": lab.User, "sudo -n id -un": "root", "hostname": host.Name,
				". /etc/os-release && echo $VERSION_CODENAME": host.Suite,
			} {
				if got := SSH(t, host.Name, line); got.Exit != 0 || strings.TrimSpace(got.Stdout) != want {
					t.Errorf("ssh %q: %+v, want %q", line, got, want)
				}
			}
			for _, part := range host.Parts {
				if got := Exec(t, host.Name, "systemctl", "is-active", part.Unit()); got != "active" {
					t.Errorf("%s is %s", part.Unit(), got)
				}
				if got := Exec(t, host.Name, part.Binary(), "--version"); !strings.Contains(got, "stand-in") {
					t.Errorf("%s does not say that it is a stand-in: %s", part.Binary(), got)
				}
			}
		})
	}
	t.Run("ids differ", func(t *testing.T) {
		for _, file := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/etc/ssh/ssh_host_ed25519_key"} {
			seen := map[string]string{}
			for _, host := range Lab(t).Hosts() {
				id := Exec(t, host.Name, "cat", file)
				if other := seen[id]; other != "" {
					t.Errorf("%s is the same on %s and %s", file, host.Name, other)
				}
				seen[id] = host.Name
			}
		}
	})
}

// TestLabRefusesUnknownHostKey: the known_hosts file is what lets a client in, nothing else.
func TestLabRefusesUnknownHostKey(t *testing.T) {
	host := Lab(t).Hosts()[0]
	got := Run(t, "ssh", "-F", Lab(t).SSHConfig(), "-o", "UserKnownHostsFile=/dev/null", host.Name, "true")
	if got.Exit != 255 || !strings.Contains(got.Stderr, "Host key verification failed") {
		t.Errorf("ssh without known hosts: %+v", got)
	}
}

// TestLabPasswordUser: sudo of the other login user wants the password, and takes it.
func TestLabPasswordUser(t *testing.T) {
	host := Lab(t).Hosts()[0].Name
	as := func(line string) lab.Output {
		return Run(t, "ssh", "-F", Lab(t).SSHConfig(), "-l", lab.PasswordUser, host, line)
	}
	if got := as("sudo -n true"); got.Exit == 0 {
		t.Errorf("sudo without the password: %+v", got)
	}
	if got := as("echo " + lab.Password + " | sudo -S -p '' id -u"); strings.TrimSpace(got.Stdout) != "0" {
		t.Errorf("sudo with the password: %+v", got)
	}
}

// TestLabApt: apt-get installs and removes a local package on both Debian releases.
func TestLabApt(t *testing.T) {
	suites := map[string]string{}
	for _, host := range Lab(t).Hosts() {
		suites[host.Suite] = host.Name
	}
	if got := slices.Sorted(maps.Keys(suites)); !slices.Equal(got, lab.Suites()) {
		t.Fatalf("suites %v, want %v", got, lab.Suites())
	}
	for suite, host := range suites {
		t.Run(suite, func(t *testing.T) {
			Copy(t, host, Lab(t).HelloDeb(), "/var/tmp/hello-lab.deb")
			got := SSH(t, host, "sudo -n apt-get install -y /var/tmp/hello-lab.deb && hello-lab")
			if got.Exit != 0 || !strings.HasSuffix(got.Stdout, "hello\n") {
				t.Errorf("apt-get install: %+v", got)
			}
			Exec(t, host, "apt-get", "purge", "-y", "hello-lab")
			if got := Exec(t, host, "dpkg", "--audit"); got != "" {
				t.Errorf("dpkg --audit: %s", got)
			}
		})
	}
}

// nodeRow is a line of `kibo node list`.
type nodeRow struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Release   string `json:"release"`
	Instances int    `json:"instances"`
}

// nodes is what ctrl says of its nodes, through ssh as an operator asks.
func nodes(t *testing.T) []nodeRow {
	t.Helper()
	got := SSH(t, Lab(t).With(release.Ctrl)[0].Name, "kibo node list --output json")
	var rows []nodeRow
	if err := json.Unmarshal([]byte(got.Stdout), &rows); got.Exit != 0 || err != nil {
		t.Fatalf("kibo node list: %+v: %v", got, err)
	}
	return rows
}

// vmms is every VMM of a host as one text: unit, main process and its start time (K41).
func vmms(t *testing.T, host string) string {
	t.Helper()
	return sortedBlocks(Exec(t, host, "systemctl", "show", "-p", "Id,ActiveState,MainPID,ExecMainStartTimestampMonotonic", "kibotos-vmm-*.service"))
}

// TestLabFleet: the stand-in runs as a fleet, and VMMs outlive their node service.
func TestLabFleet(t *testing.T) {
	Fresh(t)
	want := []nodeRow{}
	for _, host := range Lab(t).With(release.Node) {
		want = append(want, nodeRow{host.NodeName, "READY", "0.1.2", 2})
	}
	if got := nodes(t); !slices.Equal(got, want) {
		t.Fatalf("nodes: %+v, want %+v", got, want)
	}
	host := Lab(t).With(release.Node)[0].Name
	before := vmms(t, host)
	if strings.Count(before, "ActiveState=active") != 2 {
		t.Fatalf("VMMs: %s", before)
	}
	Exec(t, host, "systemctl", "stop", release.Node.Unit())
	if after := vmms(t, host); after != before {
		t.Errorf("VMMs changed when the node service was stopped\nbefore:\n%s\nafter:\n%s", before, after)
	}
	Exec(t, host, "systemctl", "start", release.Node.Unit())
	eventually(t, func() bool { return slices.Equal(nodes(t), want) })
	if after := vmms(t, host); after != before {
		t.Errorf("VMMs changed when the node service was started\nbefore:\n%s\nafter:\n%s", before, after)
	}
}

// TestLabFaults: hosts can be lost, hang, and come back.
func TestLabFaults(t *testing.T) {
	host := Lab(t).With(release.GW)[0].Name
	boot := Exec(t, host, "cat", "/proc/sys/kernel/random/boot_id")
	Exec(t, host, "touch", "/var/tmp/kept")
	power := func(ctx context.Context, host string) error {
		if err := Lab(t).KillHost(ctx, host); err != nil {
			return err
		}
		if got := SSH(t, host, "true"); got.Exit != 255 {
			t.Errorf("ssh to a dead host: %+v", got)
		}
		return Lab(t).BootHost(ctx, host)
	}
	for _, fault := range []struct {
		name string
		do   func(context.Context, string) error
	}{{"reboot", Lab(t).Reboot}, {"power", power}} {
		t.Run(fault.name, func(t *testing.T) {
			if err := fault.do(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			now := Exec(t, host, "cat", "/proc/sys/kernel/random/boot_id")
			if now == boot {
				t.Error("the host did not boot")
			}
			boot = now
			Exec(t, host, "test", "-e", "/var/tmp/kept")
			Exec(t, host, "systemctl", "is-active", release.GW.Unit())
		})
	}
	if err := Lab(t).StopSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if got := Run(t, "timeout", "2", "ssh", "-F", Lab(t).SSHConfig(), host, "true"); got.Exit != 124 {
		t.Errorf("ssh to a host that hangs: %+v", got)
	}
	if err := Lab(t).ContinueSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if got := SSH(t, host, "true"); got.Exit != 0 {
		t.Errorf("ssh to a host that hung: %+v", got)
	}
}

// eventually waits until it holds, for half a minute.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for range 150 {
		if holds() {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("it did not come true in time")
}
