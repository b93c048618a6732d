//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// doorDir is where further sshds of a host have their files.
const doorDir = "/etc/ssh/kibo-test"

// door is a further sshd on a lab's host, with a configuration of its own.
type door struct {
	host lab.Host
	port int
	log  string // on the host
}

// openDoor starts an sshd on the host with the lines in its configuration; it ends with the test. What is not in
// the lines is as Debian has it.
func openDoor(t *testing.T, host lab.Host, lines ...string) door {
	t.Helper()
	d := door{host: host, port: freePort(t, host.Address)}
	d.log = fmt.Sprintf("%s/%d.log", doorDir, d.port)
	config := strings.Join(append(lines, // the first value of a keyword counts
		"Port "+strconv.Itoa(d.port), "ListenAddress "+host.Address, "HostKey /etc/ssh/ssh_host_ed25519_key", "PidFile none", "UsePAM yes",
		"LogLevel VERBOSE", "StrictModes no", "AuthorizedKeysFile "+doorDir+"/keys/%u", "PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "PrintMotd no", "AcceptEnv LANG LC_*"), "\n") + "\n"
	if !strings.Contains(config, "Subsystem") {
		config += "Subsystem sftp /usr/lib/openssh/sftp-server\n"
	}
	file := fmt.Sprintf("%s/%d.conf", doorDir, d.port)
	putText(t, host.Name, file, config)
	unit := fmt.Sprintf("kibo-test-sshd-%d", d.port)
	Exec(t, host.Name, "systemd-run", "--quiet", "--collect", "--unit="+unit, "/usr/sbin/sshd", "-D", "-f", file, "-E", d.log)
	t.Cleanup(func() { cleanup(t, host.Name, "systemctl", "stop", unit) })
	eventually(t, func() bool { return strings.Contains(Try(t, host.Name, "cat", d.log).Stdout, "Server listening") })
	return d
}

// cleanup runs a command on a host when the test's own context has ended.
func cleanup(t *testing.T, host string, argv ...string) {
	t.Helper()
	if _, err := shared.lab.Exec(context.Background(), host, argv...); err != nil {
		t.Error(err)
	}
}

// connections are how many connections the sshd has taken.
func (d door) connections(t *testing.T) int {
	t.Helper()
	return strings.Count(Exec(t, d.host.Name, "cat", d.log), "Connection from ")
}

// entry is a block of ssh_config that reaches the door; further lines may be added.
func (d door) entry(alias, user, key string, lines ...string) string {
	return fmt.Sprintf("Host %s\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  %s\n",
		alias, d.host.Address, d.port, user, key, strings.Join(lines, "\n  "))
}

// knownHosts writes a known_hosts file with the doors' keys.
func knownHosts(t *testing.T, doors ...door) string {
	t.Helper()
	var text strings.Builder
	for _, d := range doors {
		fmt.Fprintf(&text, "[%s]:%d %s\n", d.host.Address, d.port, hostKey(t, d.host))
	}
	return writeFile(t, "known_hosts", text.String())
}

// hostKey is the public host key of a host, as in authorized_keys.
func hostKey(t *testing.T, host lab.Host) string {
	t.Helper()
	return Exec(t, host.Name, "ssh-keygen", "-y", "-f", "/etc/ssh/ssh_host_ed25519_key")
}

// newUser makes a login user with a key of its own, which all doors of the host accept. It returns the key's file.
func newUser(t *testing.T, host lab.Host, name, shell string) string {
	t.Helper()
	Try(t, host.Name, "userdel", "--remove", "--force", name)
	Exec(t, host.Name, "useradd", "--create-home", "--shell", shell, name)
	t.Cleanup(func() { cleanup(t, host.Name, "userdel", "--remove", "--force", name) })
	file, public := newKey(t)
	allow(t, host, name, public)
	return file
}

// allow lets a key in as the user, through all doors of the host.
func allow(t *testing.T, host lab.Host, user string, key ssh.PublicKey) {
	t.Helper()
	putText(t, host.Name, doorDir+"/keys/"+user, string(ssh.MarshalAuthorizedKey(key)))
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func putText(t *testing.T, host, file, text string) {
	t.Helper()
	if err := Lab(t).Put(host, file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newKey is a new private key in a file.
func newKey(t *testing.T) (string, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "key", string(pem.EncodeToMemory(block))), signer.PublicKey()
}

// signerOf reads a key that newKey wrote.
func signerOf(t *testing.T, file string) ssh.Signer {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// certify signs a key: for a host, or for a user. before and after are hours from now.
func certify(t *testing.T, ca ssh.Signer, kind uint32, key ssh.PublicKey, principal string, from, until time.Duration) string {
	t.Helper()
	now := time.Now()
	cert := &ssh.Certificate{
		Key: key, CertType: kind, KeyId: "kibo-test", ValidPrincipals: []string{principal},
		ValidAfter: uint64(now.Add(from).Unix()), ValidBefore: uint64(now.Add(until).Unix()),
	}
	if kind == ssh.UserCert {
		cert.Extensions = map[string]string{"permit-pty": ""}
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(cert))
}

// newAgent serves private keys on a socket.
func newAgent(t *testing.T, files ...string) string {
	t.Helper()
	keys := agent.NewKeyring()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.ParseRawPrivateKey(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "agent") // names of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, c) }()
		}
	}()
	return listener.Addr().String()
}

// reach resolves a host through an ssh_config as the program does, and connects to it.
func reach(t *testing.T, config, host string, change ...func(*sshconn.Config)) (*sshconn.Conn, error) {
	t.Helper()
	cfg := resolved(t, config, host)
	for _, c := range change {
		c(&cfg)
	}
	conn, err := sshconn.Dial(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func resolved(t *testing.T, config, host string) sshconn.Config {
	t.Helper()
	r, err := sshconn.SystemResolver()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: host, Args: []string{"-F", config}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func freePort(t *testing.T, address string) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// flat is all that a program printed, without the line ends that depend on the width.
func flat(o lab.Output) string { return strings.Join(strings.Fields(o.Stdout+o.Stderr), " ") }

// lines counts lines that hold a text.
func lines(data, text string) (n int) {
	for line := range bytes.Lines([]byte(data)) {
		if bytes.Contains(line, []byte(text)) {
			n++
		}
	}
	return n
}
