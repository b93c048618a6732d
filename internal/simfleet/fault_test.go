package simfleet

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/agent/gate"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

func set(t *testing.T, m *Machine, change func(f *host.Faults)) {
	t.Helper()
	if err := m.SetFaults(change); err != nil {
		t.Fatal(err)
	}
}

func names(words ...string) func([]string) bool {
	return func(argv []string) bool {
		for _, w := range words {
			if !slices.Contains(argv, w) {
				return false
			}
		}
		return true
	}
}

func TestRefusedAndBack(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}})
	m := f.Machine("a")
	set(t, m, func(f *host.Faults) { f.Refuse = true })
	if c, err := net.Dial("tcp", m.Addr()); err == nil {
		_ = c.Close()
		t.Error("a host that refuses took a connection")
	}
	set(t, m, func(f *host.Faults) { f.Refuse = false })
	if r := execLine(t, dial(t, f, "a"), "echo back", ""); r.out != "back\n" {
		t.Errorf("got %+v", r)
	}
}

func TestHang(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}})
	set(t, f.Machine("a"), func(f *host.Faults) { f.Hang = true })
	c, err := net.Dial("tcp", f.Machine("a").Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := c.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("read: %v, want nothing to come", err)
	}
}

func TestWrongKeyAndUser(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}, {Name: "b"}}})
	other := newFleet(t, Spec{Hosts: []HostSpec{{Name: "c"}}})
	signer, err := other.Signer()
	if err != nil {
		t.Fatal(err)
	}
	own, err := f.Signer()
	if err != nil {
		t.Fatal(err)
	}
	for user, key := range map[string]ssh.Signer{"ops": signer, "root": own} {
		c, err := ssh.Dial("tcp", f.Machine("a").Addr(), &ssh.ClientConfig{
			User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(f.Machine("a").HostKey()),
		})
		if err == nil {
			_ = c.Close()
			t.Errorf("user %s was let in", user)
		}
	}
	if string(f.Machine("a").HostKey().Marshal()) == string(f.Machine("b").HostKey().Marshal()) {
		t.Error("two hosts have one host key")
	}
}

// A job goes on when its connection is cut, is joined by its key and is not run twice.
// proves K31 Z8
func TestDropDuringJob(t *testing.T) {
	for name, fault := range map[string]func(f *host.Faults){
		"during": func(f *host.Faults) { f.DropDuring = host.Once(names("run", "stop")) },
		"after":  func(f *host.Faults) { f.DropAfter = host.Once(names("run", "stop")) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, Spec{Ctrl: 1, Nodes: 1, InstancesPerNode: 1, AgentVersion: "0.1.0"})
			m := f.Machine("node-1")
			execLine(t, dial(t, f, "node-1"), "sudo -n -- kibo-agent allow --for 5m --operation stop --once", "")
			set(t, m, fault)
			s, err := dial(t, f, "node-1").NewSession()
			if err != nil {
				t.Fatal(err)
			}
			line := "sudo -n -- kibo-agent run --key k1 --operation stop --output json -- systemctl stop kibotos-node.service"
			var missing *ssh.ExitMissingError
			if err := s.Run(line); !errors.As(err, &missing) && !errors.Is(err, io.EOF) {
				t.Errorf("run: %v, want a lost connection", err)
			}
			r := execLine(t, dial(t, f, "node-1"), line, "")
			if r.exit != 0 || !strings.Contains(r.out, `"state":"finished"`) {
				t.Errorf("joined: %+v", r)
			}
			if u := m.Unit("kibotos-node.service"); u.Active != "inactive" || len(m.VMMs()) != 1 {
				t.Errorf("unit is %s, %d VMs", u.Active, len(m.VMMs()))
			}
		})
	}
}

func TestDropBefore(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}})
	set(t, f.Machine("a"), func(f *host.Faults) { f.DropBefore = host.Once(names("touch")) })
	s, err := dial(t, f, "a").NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run("touch here"); err == nil {
		t.Error("the command has an exit status")
	}
	if f.Machine("a").FS().Exists("/home/ops/here") {
		t.Error("the command was run")
	}
}

// proves K31
func TestNodeThatDoesNotComeBack(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 1, InstancesPerNode: 2, AgentVersion: "0.1.0"})
	m := f.Machine("node-1")
	before := m.VMMs()
	set(t, m, func(f *host.Faults) { f.FailStart = map[string]bool{"kibotos-node.service": true} })
	c := dial(t, f, "node-1")
	execLine(t, c, "sudo systemctl stop kibotos-node", "")
	if r := execLine(t, c, "sudo systemctl start kibotos-node", ""); r.exit != 1 || !strings.Contains(r.err, "failed because") {
		t.Errorf("start: %+v", r)
	}
	if r := execLine(t, c, "systemctl show -p ActiveState,Result --value kibotos-node", ""); r.out != "exit-code\nfailed\n" {
		t.Errorf("got %q", r.out)
	}
	if r := execLine(t, dial(t, f, "ctrl-1"), "kibo node list", ""); !strings.Contains(r.out, "NOT-READY") {
		t.Errorf("got %q", r.out)
	}
	set(t, m, func(f *host.Faults) { f.FailStart = nil })
	if err := m.SetSwitch(release.Node, "fail-adopt", []byte{}); err != nil {
		t.Fatal(err)
	}
	execLine(t, c, "sudo systemctl start kibotos-node", "")
	if r := execLine(t, dial(t, f, "ctrl-1"), "kibo node list --output json", ""); !strings.Contains(r.out, `"failed":2`) {
		t.Errorf("got %q", r.out)
	}
	if after := m.VMMs(); len(after) != 2 || after[0].MainPID != before[0].MainPID || after[0].Start != before[0].Start {
		t.Errorf("VMs are %+v, were %+v", after, before)
	}
}

// proves K55: a gateway's package script wants the service inactive, a failed one will not do.
func TestGatewayPackageRefuses(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, GW: 1})
	m := f.Machine("gw-1")
	deb, err := f.debs.part("0.1.4", release.GW)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.FS().WriteFile(hostRoot, "/tmp/gw.deb", deb, 0o644); err != nil {
		t.Fatal(err)
	}
	c := dial(t, f, "gw-1")
	install := "sudo apt-get install -y /tmp/gw.deb"
	if r := execLine(t, c, install, ""); r.exit != 100 || !strings.Contains(r.out, "kibotos-gw.service is active") {
		t.Errorf("active: %+v", r)
	}
	m.Kill("kibotos-gw.service")
	if r := execLine(t, c, install, ""); r.exit != 100 || !strings.Contains(r.out, "kibotos-gw.service is failed") {
		t.Errorf("failed: %+v", r)
	}
	execLine(t, c, "sudo systemctl reset-failed kibotos-gw.service", "")
	if r := execLine(t, c, install, ""); r.exit != 0 {
		t.Errorf("inactive: %+v", r)
	}
	if p, _ := m.Installed("kibotos-gw"); p.Version != "0.1.4" || p.State != "installed" {
		t.Errorf("package is %+v", p)
	}
	if u := m.Unit("kibotos-gw.service"); u.Active != "inactive" {
		t.Errorf("the package started the service: %s", u.Active)
	}
}

func TestDiskFullAndAptLocked(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, GW: 1})
	m, c := f.Machine("gw-1"), dial(t, f, "gw-1")
	set(t, m, func(f *host.Faults) { f.DiskFull = true })
	if r := execLine(t, c, "dd of=/tmp/x status=none", "data"); r.exit != 1 || !strings.Contains(r.err, "No space left on device") {
		t.Errorf("dd: %+v", r)
	}
	if r := execLine(t, c, "df -B1 --output=avail /tmp", ""); r.out != "Avail\n0\n" {
		t.Errorf("df: %q", r.out)
	}
	set(t, m, func(f *host.Faults) { f.DiskFull, f.AptLocked = false, true })
	deb, err := f.debs.part("0.1.4", release.GW)
	if err != nil {
		t.Fatal(err)
	}
	execLine(t, c, "dd of=/tmp/gw.deb status=none", string(deb))
	if r := execLine(t, c, "sudo apt-get install -y /tmp/gw.deb", ""); r.exit != 100 || !strings.Contains(r.err, "Could not get lock") {
		t.Errorf("apt-get: %+v", r)
	}
}

// proves Z2: every allow-file that is not exactly right is a closed gate, with its own reason.
func TestGateOnTheHost(t *testing.T) {
	f := newFleet(t, Spec{Ctrl: 1, Nodes: 1, AgentVersion: "0.1.0"})
	m, c := f.Machine("node-1"), dial(t, f, "node-1")
	open := "sudo kibo-agent allow --for 5m; "
	for code, line := range map[string]string{
		gate.CodeOpen:        open,
		gate.CodeMissing:     open + "sudo kibo-agent close",
		gate.CodeMode:        open + "sudo chmod 0664 /var/lib/kibo-agent/allow.json",
		gate.CodeOwner:       open + "sudo chown ops:ops /var/lib/kibo-agent/allow.json",
		gate.CodeSymlink:     open + "sudo mv /var/lib/kibo-agent/allow.json /var/lib/kibo-agent/x; sudo ln -s x /var/lib/kibo-agent/allow.json",
		gate.CodeNotRegular:  "sudo kibo-agent close; sudo mkdir /var/lib/kibo-agent/allow.json",
		gate.CodeNotJSON:     open + "echo no | sudo tee /var/lib/kibo-agent/allow.json",
		gate.CodeExpired:     open + `echo '{"notAfter":1700000000}' | sudo tee /var/lib/kibo-agent/allow.json`,
		gate.CodeDirWritable: open + "sudo chmod 0777 /var/lib/kibo-agent",
	} {
		execLine(t, c, "sudo mkdir -p -m 0755 /var/lib/kibo-agent; sudo rm -rf /var/lib/kibo-agent/allow.json; "+line, "")
		if v, _ := m.Gate(); v.Code != code {
			t.Errorf("%s: gate is %s (%s), want %s", line, v.Code, v.Reason, code)
		}
		execLine(t, c, "sudo chmod 0755 /var/lib/kibo-agent", "")
	}
}

func TestSFTP(t *testing.T) {
	f := newFleet(t, Spec{Hosts: []HostSpec{{Name: "a"}}})
	c, err := sftp.NewClient(dial(t, f, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	w, err := c.Create("upload.part")
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("kibo", 100_000)
	if _, err := w.ReadFrom(strings.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{w.Close(), c.Chmod("upload.part", 0o640), c.PosixRename("upload.part", "upload")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	info, err := c.Stat("/home/ops/upload")
	if err != nil || info.Mode().Perm() != 0o640 || info.Size() != int64(len(data)) {
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := c.Create("/etc/passwd"); err == nil {
		t.Error("the login user could write to /etc")
	}
	if s := f.Machine("a").Stats(); s.Received != int64(len(data)) || s.SFTP != 1 || s.Connections != 1 {
		t.Errorf("stats are %+v", s)
	}
	set(t, f.Machine("a"), func(f *host.Faults) { f.NoSFTP = true })
	if _, err := sftp.NewClient(dial(t, f, "a")); err == nil {
		t.Error("there is an SFTP subsystem")
	}
}
