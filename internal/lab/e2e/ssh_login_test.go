//go:build lab && linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

func reads(argv ...string) command.Command {
	return command.Command{Argv: argv, Effect: command.Reads}
}

// wantRemote demands an error of a kind that says all of it.
func wantRemote(t *testing.T, err error, kind remote.Kind, parts ...string) {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got error %v, want kind %s", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error(), p) {
			t.Errorf("%q is not in %q", p, e)
		}
	}
}

// says runs a command and demands what it prints.
func says(t *testing.T, conn remote.Conn, want string, argv ...string) {
	t.Helper()
	r, err := conn.Run(t.Context(), reads(argv...))
	if got := strings.TrimSpace(string(r.Stdout)); err != nil || got != want {
		t.Errorf("%q: got %q, %v; want %q", argv, got, err, want)
	}
}

// proves ProxyJump through one and two bastions, each with its own user, key, port and host key check, as ssh reads it
func TestSSHJumpHosts(t *testing.T) {
	hosts := Lab(t).Hosts()
	first, second, target := openDoor(t, hosts[0]), openDoor(t, hosts[1]), openDoor(t, hosts[2], "AllowUsers last")
	known := knownHosts(t, first, second, target)
	keys := []string{
		newUser(t, hosts[0], "jump1", "/usr/sbin/nologin"), // a bastion forwards, it runs nothing
		newUser(t, hosts[1], "jump2", "/bin/sh"), newUser(t, hosts[2], "last", "/bin/sh"),
	}
	config := writeFile(t, "config", first.entry("bastion-1", "jump1", keys[0])+second.entry("bastion-2", "jump2", keys[1])+
		target.entry("one", "last", keys[2], "ProxyJump bastion-1")+target.entry("two", "last", keys[2], "ProxyJump bastion-1,bastion-2")+
		second.entry("nested", "jump2", keys[1], "ProxyJump bastion-1")+target.entry("through", "last", keys[2], "ProxyJump nested")+
		"Host *\n  StrictHostKeyChecking yes\n  UserKnownHostsFile "+known+"\n")
	for _, name := range []string{"one", "two", "through"} {
		conn, err := reach(t, config, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		says(t, conn, "last", "id", "-un")
	}
	if log := Exec(t, hosts[1].Name, "cat", second.log); lines(log, "Accepted publickey for jump2 ") != 2 {
		t.Errorf("the second bastion saw:\n%s", log)
	}
	before := target.connections(t)
	wrong := func(cfg *sshconn.Config) { cfg.Jump[1].KnownHosts = []string{knownHosts(t, first, target)} }
	_, err := reach(t, config, "two", wrong)
	wantRemote(t, err, remote.HostKey, "jump host 2 (bastion-2)", "unknown")
	_, err = reach(t, config, "one", func(cfg *sshconn.Config) { cfg.Jump[0].KeyFiles = keys[1:2] })
	wantRemote(t, err, remote.Auth, "jump host 1 (bastion-1)", "jump1")
	if n := target.connections(t) - before; n != 0 {
		t.Errorf("%d connections to the target past a jump host that is not the one meant", n)
	}
}

// proves login by certificate, and hosts known by the certificates of their authority
func TestSSHCertificates(t *testing.T) {
	host := Lab(t).Hosts()[0]
	caFile, caKey := newKey(t)
	ca := signerOf(t, caFile)
	hostKeyFile, hostKey := newKey(t)
	private, err := os.ReadFile(hostKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	putText(t, host.Name, doorDir+"/ca.pub", string(ssh.MarshalAuthorizedKey(caKey)))
	open := func(principal string, from, until time.Duration) door {
		name := fmt.Sprintf("%s/cert-%d", doorDir, time.Now().UnixNano())
		if err := Lab(t).Put(host.Name, name, private, 0o600); err != nil {
			t.Fatal(err)
		}
		putText(t, host.Name, name+"-cert.pub", certify(t, ca, ssh.HostCert, hostKey, principal, from, until))
		return openDoor(t, host, "HostKey "+name, "HostCertificate "+name+"-cert.pub", "TrustedUserCAKeys "+doorDir+"/ca.pub",
			"AuthorizedKeysFile none")
	}
	userKey, userPublic := newKey(t)
	if err := os.WriteFile(userKey+"-cert.pub", []byte(certify(t, ca, ssh.UserCert, userPublic, lab.User, -time.Hour, time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	authority := writeFile(t, "known_hosts", "@cert-authority *.lab.example,127.* "+string(ssh.MarshalAuthorizedKey(caKey)))
	config := func(d door, known string) string {
		return writeFile(t, "config", d.entry("node", lab.User, userKey)+"  StrictHostKeyChecking yes\n  UserKnownHostsFile "+known+"\n")
	}
	good := open(host.Address, -time.Hour, time.Hour)
	conn, err := reach(t, config(good, authority), "node")
	if err != nil {
		t.Fatal(err)
	}
	says(t, conn, lab.User, "id", "-un")
	if log := Exec(t, host.Name, "cat", good.log); !strings.Contains(log, "ED25519-CERT") {
		t.Errorf("the login was not by certificate:\n%s", log)
	}
	revoked := writeFile(t, "known_hosts", "@cert-authority * "+string(ssh.MarshalAuthorizedKey(caKey))+"@revoked * "+string(ssh.MarshalAuthorizedKey(hostKey)))
	for name, c := range map[string]struct {
		door  door
		known string
		want  string
	}{
		"expired":       {open(host.Address, -2*time.Hour, -time.Hour), authority, "expired at"},
		"not yet":       {open(host.Address, time.Hour, 2*time.Hour), authority, "not yet valid"},
		"another host":  {open("other.lab.example", -time.Hour, time.Hour), authority, "principal"},
		"revoked":       {good, revoked, "is revoked"},
		"no authority":  {good, writeFile(t, "known_hosts", ""), "unknown"},
		"not this host": {good, writeFile(t, "known_hosts", "@cert-authority *.lab.example "+string(ssh.MarshalAuthorizedKey(caKey))), "unknown"},
	} {
		_, err := reach(t, config(c.door, c.known), "node")
		if err == nil {
			t.Errorf("%s: trusted", name)
			continue
		}
		wantRemote(t, err, remote.HostKey, c.want)
	}
}

// proves ssh-agent-many-keys on a real server: the named key is offered first, and a failure says how many were
func TestSSHAgentWithManyKeys(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host)
	var keys []string
	for range 7 {
		file, _ := newKey(t)
		keys = append(keys, file)
	}
	right, public := newKey(t)
	allow(t, host, lab.User, public)
	socket := newAgent(t, append(keys, right)...)
	named := writeFile(t, "right.pub", string(ssh.MarshalAuthorizedKey(public)))
	tail := "  StrictHostKeyChecking yes\n  IdentityAgent " + socket + "\n  UserKnownHostsFile " + knownHosts(t, d) + "\n"
	for _, only := range []string{"yes", "no"} {
		entry := strings.Replace(d.entry("node", lab.User, named), "IdentitiesOnly yes", "IdentitiesOnly "+only, 1)
		conn, err := reach(t, writeFile(t, "config", entry+tail), "node")
		if err != nil {
			t.Fatalf("IdentitiesOnly %s: %v", only, err)
		}
		says(t, conn, lab.User, "id", "-un")
	}
	before := d.connections(t)
	entry := strings.Replace(d.entry("node", lab.User, "/no/such/id_ed25519"), "IdentitiesOnly yes", "IdentitiesOnly no", 1)
	_, err := reach(t, writeFile(t, "config", entry+tail), "node")
	wantRemote(t, err, remote.Auth, "8 keys offered", "fewer tries")
	if n := d.connections(t) - before; n != 1 {
		t.Errorf("%d connections after a refused login, want 1", n)
	}
}

// proves ssh-expired-password, and that no login that the host refuses for its own reasons is repeated
func TestSSHAccountsThatCannotLogIn(t *testing.T) {
	for _, host := range eachSuite(t) {
		d := openDoor(t, host)
		known := knownHosts(t, d)
		for name, c := range map[string]struct {
			shell string
			do    []string
			want  string
		}{
			"expired password": {"/bin/sh", []string{"chage", "-d", "0", "odd"}, "password of user odd has expired"},
			"expired account":  {"/bin/sh", []string{"chage", "-E", "1", "odd"}, "closed the connection during login of user odd"},
			"no login":         {"/usr/sbin/nologin", []string{"true"}, "This account is currently not available"},
			"no shell":         {"/no/such/shell", []string{"true"}, "user odd"},
		} {
			t.Run(host.Suite+" "+name, func(t *testing.T) {
				key := newUser(t, host, "odd", c.shell)
				Exec(t, host.Name, c.do...)
				before, begin := d.connections(t), time.Now()
				config := writeFile(t, "config", d.entry("node", "odd", key, "UserKnownHostsFile "+known))
				conn, err := reach(t, config, "node")
				if err == nil {
					_, err = conn.Run(t.Context(), reads("true"))
				}
				wantRemote(t, err, remote.Auth, c.want)
				if n := d.connections(t) - before; n != 1 || time.Since(begin) > 10*time.Second {
					t.Errorf("%d connections in %s, want 1", n, time.Since(begin))
				}
			})
		}
	}
}

// eachSuite is one host of each Debian release.
func eachSuite(t *testing.T) []lab.Host {
	t.Helper()
	var hosts []lab.Host
	seen := map[string]bool{}
	for _, host := range Lab(t).Hosts() {
		if !seen[host.Suite] {
			seen[host.Suite] = true
			hosts = append(hosts, host)
		}
	}
	return hosts
}
