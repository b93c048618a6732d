//go:build lab && linux

package e2e

import (
	"bytes"
	"strings"
	"testing"

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
