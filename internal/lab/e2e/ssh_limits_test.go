//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// fishy is a login shell that is not POSIX: it knows words and single quotes, and takes offence at everything else.
const fishy = `#!/usr/bin/perl
use Text::ParseWords;
my ($flag, $line) = @ARGV;
exit 0 unless defined $line;
(my $bare = $line) =~ s/'[^']*'//g;
if ($flag ne '-c' || $bare =~ /[\$\x60;&|<>()*?~#!{}]/ || $bare =~ /^\s*\w+=/) {
	print STDERR "fishy: unsupported use of '$bare'\n";
	exit 127;
}
exec shellwords($line);
`

// proves the promises of remote.Conn on real hosts of every kind: both Debians, one session a connection, no file
// transfer, noisy start-up files, a login shell that is not POSIX
func TestSSHConformance(t *testing.T) {
	kinds := []struct {
		name, shell string
		lines       []string
		prepare     func(t *testing.T, host lab.Host)
	}{
		{name: "plain", shell: "/bin/sh"},
		{name: "one session", shell: "/bin/sh", lines: []string{"MaxSessions 1"}},
		{name: "no sftp", shell: "/bin/sh", lines: []string{"Subsystem sftp /bin/false"}},
		{name: "noisy", shell: "/bin/bash", prepare: func(t *testing.T, host lab.Host) {
			putText(t, host.Name, "/home/kind/.bashrc", "echo '== PROD == authorised use only'\necho loud >&2\nprintf 'no line end'\n")
		}},
		{name: "not posix", shell: "/usr/local/bin/fishy"},
	}
	for _, host := range eachSuite(t) {
		if err := Lab(t).Put(host.Name, "/usr/local/bin/fishy", []byte(fishy), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			t.Run(host.Suite+" "+kind.name, func(t *testing.T) {
				d := openDoor(t, host, kind.lines...)
				key := newUser(t, host, "kind", kind.shell)
				if kind.prepare != nil {
					kind.prepare(t, host)
				}
				config := writeFile(t, "config", d.entry("node", "kind", key, "UserKnownHostsFile "+knownHosts(t, d)))
				remotetest.Conformance(t, func(t *testing.T) remote.Conn {
					conn, err := reach(t, config, "node")
					if err != nil {
						t.Fatal(err)
					}
					return conn
				})
			})
		}
	}
}

// proves sudo with a password on real sudo, through shells of both kinds: as root, as another user, held, and with
// bytes in the password that shells and prompts have views on
func TestSSHSudoPassword(t *testing.T) {
	const password = `a b;$(x)'"\é%n`
	for _, host := range eachSuite(t) {
		if err := Lab(t).Put(host.Name, "/usr/local/bin/fishy", []byte(fishy), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, shell := range []string{"/bin/sh", "/usr/local/bin/fishy"} {
			t.Run(host.Suite+" "+shell, func(t *testing.T) {
				d := openDoor(t, host)
				key := newUser(t, host, "admin", shell)
				putText(t, host.Name, "/etc/sudoers.d/kibo-test", "admin ALL=(ALL:ALL) ALL\n")
				t.Cleanup(func() { cleanup(t, host.Name, "rm", "-f", "/etc/sudoers.d/kibo-test") })
				var quiet bytes.Buffer
				if n, err := Lab(t).Stream(t.Context(), host.Name, strings.NewReader("admin:"+password+"\n"), &quiet, &quiet, "chpasswd"); n != 0 || err != nil {
					t.Fatalf("chpasswd: %d, %v: %s", n, err, quiet.String())
				}
				config := writeFile(t, "config", d.entry("node", "admin", key, "UserKnownHostsFile "+knownHosts(t, d)))
				conn, err := reach(t, config, "node", func(c *sshconn.Config) { c.BecomePassword = []byte(password) })
				if err != nil {
					t.Fatal(err)
				}
				who := func(as string) command.Command {
					return command.Command{Argv: []string{"id", "-un"}, As: as, Effect: command.Reads}
				}
				b := command.Batch{Commands: []command.Command{who(command.Login), who(command.Root), who(lab.User)}}
				got, err := conn.RunBatch(t.Context(), b)
				if err != nil || len(got) != 3 || string(got[0].Stdout)+string(got[1].Stdout)+string(got[2].Stdout) != "admin\nroot\n"+lab.User+"\n" {
					t.Fatalf("got %+v, %v", got, err)
				}
				hold := command.Command{Argv: []string{"sh", "-c", "id -u; cat"}, As: command.Root, Effect: command.Reads}
				held, err := conn.Hold(t.Context(), hold)
				if err != nil || held.First != "0" {
					t.Fatalf("hold: %+v, %v", held, err)
				}
				if err := held.Release(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// proves sudo-lockout through the program: a wrong password is tried once in the whole fleet
func TestSSHWrongSudoPassword(t *testing.T) {
	text := strings.Replace(string(read(t, Lab(t).PasswordInventory())), "    ansible_become_password: "+lab.Password+"\n", "", 1)
	inventory := writeFile(t, "inventory.yml", text)
	tries := func() (n int) {
		for _, host := range Lab(t).Hosts() {
			n += lines(Exec(t, host.Name, "journalctl", "--quiet", "--output=cat", "SYSLOG_IDENTIFIER=sudo"), "authentication failure")
		}
		return n
	}
	before := tries()
	wrong := writeFile(t, "password", "wrong\n")
	got := Run(t, Program(t, "kibo-rollout"), "status", "-i", inventory, "--become-password-file", wrong)
	if got.Exit == 0 || !strings.Contains(flat(got), "refuses the become password") {
		t.Errorf("got %+v", got)
	}
	if n := tries() - before; n != 1 {
		t.Errorf("the wrong password was tried %d times", n)
	}
	right := writeFile(t, "password", lab.Password+"\n")
	got = Run(t, Program(t, "kibo-rollout"), "status", "-i", inventory, "--become-password-file", right)
	if got.Exit != 0 {
		t.Errorf("with the right password: %+v", got)
	}
	got = Run(t, Program(t, "kibo-rollout"), "status", "-i", Lab(t).PasswordInventory())
	if got.Exit != 0 || strings.Contains(got.Stdout+got.Stderr, lab.Password) {
		t.Errorf("with the password of the inventory: %+v", got)
	}
}

// proves ssh-maxstartups on a real server: nobody is lost to its throttle
func TestSSHMaxStartups(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host, "MaxStartups 3:50:5")
	key := newUser(t, host, "many", "/bin/sh")
	cfg := resolved(t, writeFile(t, "config", d.entry("node", "many", key, "UserKnownHostsFile "+knownHosts(t, d))), "node")
	dialer := &sshconn.Dialer{}
	errs := make(chan error)
	for range 20 {
		go func() {
			conn, err := dialer.Dial(t.Context(), cfg)
			if err == nil {
				_, err = conn.Run(t.Context(), reads("true"))
				_ = conn.Close()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	log := Exec(t, host.Name, "cat", d.log)
	t.Logf("20 logins, %d dropped by MaxStartups on the way", lines(log, "drop connection"))
}

// proves ssh-silent-apt and sftp-garbage-tail as far as the transport goes: a link that is cut in an upload leaves no file
// under the name, and nothing that the next upload goes by
func TestSSHUploadIsCut(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host)
	key := newUser(t, host, "sender", "/bin/sh")
	config := writeFile(t, "config", d.entry("node", "sender", key, "UserKnownHostsFile "+knownHosts(t, d)))
	data := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	sum := sha256.Sum256(data)
	u := remote.Upload{Source: bytes.NewReader(data), Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Path: "part.deb", Mode: 0o644}
	conn, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	cut := u
	cut.Progress = func(sent, size int64) {
		if sent > size/2 {
			_ = conn.Close()
		}
	}
	wantRemote(t, conn.Upload(t.Context(), cut), remote.Lost)
	if got := Try(t, host.Name, "test", "-e", "/home/sender/part.deb"); got.Exit == 0 {
		t.Error("half a file is under the name")
	}
	again, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Upload(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	says(t, again, u.SHA256+"  part.deb", "sha256sum", "part.deb")
}

// proves that a host that hangs costs a bounded time and does not keep the others from answering
func TestSSHHostHangs(t *testing.T) {
	host := Lab(t).Hosts()[1].Name
	if err := Lab(t).StopSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Lab(t).ContinueSSHD(context.Background(), host); err != nil {
			t.Error(err)
		}
	})
	begin := time.Now()
	got := Rollout(t, "status", "-e", "ansible_ssh_timeout=3")
	if got.Exit != 6 || !strings.Contains(flat(got), host+": unreachable: no connection within 3s") {
		t.Errorf("got %+v", got)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	for _, other := range Lab(t).Hosts() {
		if !strings.Contains(got.Stdout, other.Name) {
			t.Errorf("%s is not in the answer:\n%s", other.Name, got.Stdout)
		}
	}
}

// proves that a connection whose host hangs under a command ends in time
func TestSSHHostHangsUnderCommand(t *testing.T) {
	host := Lab(t).Hosts()[1]
	d := openDoor(t, host)
	key := newUser(t, host, "hung", "/bin/sh")
	config := writeFile(t, "config", d.entry("node", "hung", key, "UserKnownHostsFile "+knownHosts(t, d), "ServerAliveInterval 1", "ServerAliveCountMax 2"))
	conn, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	stop := func(signal string) {
		Exec(t, host.Name, "systemctl", "kill", "--signal="+signal, fmt.Sprintf("kibo-test-sshd-%d", d.port))
	}
	errs := make(chan error, 1)
	go func() {
		_, err := conn.Run(t.Context(), reads("sleep", "60"))
		errs <- err
	}()
	time.Sleep(300 * time.Millisecond)
	stop("STOP")
	defer stop("CONT")
	select {
	case err := <-errs:
		wantRemote(t, err, remote.Lost, "keepalives")
	case <-time.After(20 * time.Second):
		t.Error("it hangs with the host")
	}
}

// proves ssh-kh-strict-yes, ci-known-hosts-prompt: an unknown host ends in seconds, with the fingerprint; a setting that
// would skip the check is refused before anything is connected to
func TestSSHUnknownHost(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host)
	key := newUser(t, host, "new", "/bin/sh")
	fingerprint := strings.Fields(Exec(t, host.Name, "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key"))[1]
	known := writeFile(t, "known_hosts", "")
	for policy, c := range map[string]struct {
		exit, connections int
		want              string
	}{
		"yes":        {6, 1, fingerprint},
		"ask":        {6, 1, fingerprint},
		"no":         {2, 0, "StrictHostKeyChecking=no is refused"},
		"accept-new": {0, 1, fingerprint},
	} {
		t.Run(policy, func(t *testing.T) {
			inventory := writeFile(t, "inventory.yml", fmt.Sprintf("kibo_node: {hosts: {stranger: {ansible_host: %s, ansible_port: %d, ansible_user: new, "+
				"ansible_ssh_private_key_file: %s, ansible_ssh_common_args: '-o UserKnownHostsFile=%s -o StrictHostKeyChecking=%s'}}}\n",
				host.Address, d.port, key, known, policy))
			before, begin := d.connections(t), time.Now()
			got := Run(t, Program(t, "kibo-rollout"), "status", "-i", inventory)
			if policy != "accept-new" && got.Exit != c.exit || !strings.Contains(flat(got), c.want) || !strings.Contains(flat(got), "stranger") {
				t.Errorf("got %+v", got)
			}
			if n := d.connections(t) - before; n != c.connections || time.Since(begin) > 10*time.Second {
				t.Errorf("%d connections in %s, want %d", n, time.Since(begin), c.connections)
			}
			recorded := strings.Contains(string(read(t, known)), "ssh-ed25519")
			if recorded != (policy == "accept-new") {
				t.Errorf("recorded: %v", recorded)
			}
			if err := os.Truncate(known, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// proves one session a connection while the fleet lock is held on it: the other commands still run
func TestSSHOneSessionWhileHeld(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host, "MaxSessions 1")
	key := newUser(t, host, "one", "/bin/sh")
	conn, err := reach(t, writeFile(t, "config", d.entry("node", "one", key, "UserKnownHostsFile "+knownHosts(t, d))), "node")
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 10 {
		go func() {
			_, err := conn.Run(t.Context(), reads("sleep", "0.2"))
			errs <- err
		}()
	}
	var all error
	for range 10 {
		all = errors.Join(all, <-errs)
	}
	if all != nil || d.connections(t) != 1 {
		t.Errorf("%d connections, %v", d.connections(t), all)
	}
	held, err := conn.Hold(t.Context(), reads("sh", "-c", "echo held; cat"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, conn, "one", "id", "-un")
	says(t, conn, "one", "id", "-un")
	if n := d.connections(t); n != 2 {
		t.Errorf("%d connections, want a second one", n)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}
