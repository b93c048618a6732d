package sshconn_test

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// newAgent serves keys on a socket.
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
	dir, err := os.MkdirTemp("", "agent") // socket names must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
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

func keyFiles(t *testing.T, n int) []string {
	t.Helper()
	var files []string
	for range n {
		file, _ := newKeyFile(t, "")
		files = append(files, file)
	}
	return files
}

// strict lets only one key in, and allows few tries.
func strict(t *testing.T, key ssh.PublicKey, tries int) (*remotetest.Server, sshconn.Config) {
	t.Helper()
	s := remotetest.NewServer(t, remotetest.ServerOptions{Users: map[string][]ssh.PublicKey{"ops": {key}}, MaxAuthTries: tries})
	cfg := configFor(t, s)
	cfg.KeyFiles = nil
	return s, cfg
}

// proves ssh-agent-hides-key and ssh-agent-many-keys: the named key is offered first, whatever the agent holds
func TestNamedKeyFirst(t *testing.T) {
	right, public := newKeyFile(t, "")
	s, cfg := strict(t, public, 3)
	cfg.AgentSocket = newAgent(t, keyFiles(t, 7)...)
	cfg.KeyFiles = []string{right}
	connect(t, cfg)
	if n := s.Stats().KeysOffered; n > 2 {
		t.Errorf("%d offers, want the right one at once", n)
	}
}

// proves ssh-agent-many-keys: a public key file names a key of the agent
func TestPublicHalfNamesAgentKey(t *testing.T) {
	right, public := newKeyFile(t, "")
	_, cfg := strict(t, public, 3)
	cfg.AgentSocket = newAgent(t, append(keyFiles(t, 7), right)...)
	file := filepath.Join(t.TempDir(), "right.pub")
	if err := os.WriteFile(file, ssh.MarshalAuthorizedKey(public), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.KeyFiles, cfg.IdentitiesOnly = []string{file}, true
	connect(t, cfg)

	cfg.AgentSocket = ""
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Auth, "no key to offer", "private half is not in the agent")
}

// proves ssh-agent-many-keys: the reason is named
func TestTooManyKeys(t *testing.T) {
	right, public := newKeyFile(t, "")
	s, cfg := strict(t, public, 3)
	cfg.AgentSocket = newAgent(t, append(keyFiles(t, 6), right)...)
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Auth, "7 keys offered", "allows fewer")
	if n := s.Stats().Connections; n != 1 {
		t.Errorf("a definite failure was tried %d times", n)
	}
}

func TestIdentitiesOnly(t *testing.T) {
	right, public := newKeyFile(t, "")
	s, cfg := strict(t, public, 6)
	cfg.AgentSocket = newAgent(t, right)
	cfg.KeyFiles, cfg.IdentitiesOnly = keyFiles(t, 1), true
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Auth, "none of 1 keys accepted")
	if n := s.Stats().KeysOffered; n != 1 {
		t.Errorf("%d keys offered", n)
	}
}

// proves ssh-encrypted-key
func TestEncryptedKey(t *testing.T) {
	file, public := newKeyFile(t, "secret words")
	_, cfg := strict(t, public, 3)
	cfg.KeyFiles = []string{file}
	_, err := sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.Auth, file+" is encrypted", "ssh-add")

	var asked atomic.Int32
	d := &sshconn.Dialer{Passphrase: func(string) ([]byte, error) {
		asked.Add(1)
		return []byte("secret words"), nil
	}}
	for range 3 {
		conn, err := d.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}

	other, otherCfg := strict(t, remotetest.NewKey(t).PublicKey(), 3)
	otherCfg.KeyFiles = []string{file}
	fresh := &sshconn.Dialer{Passphrase: func(string) ([]byte, error) {
		t.Error("asked for a key that the server does not want")
		return nil, nil
	}}
	_, err = fresh.Dial(t.Context(), otherCfg)
	wantKind(t, err, remote.Auth)
	_ = other

	wrong := &sshconn.Dialer{Passphrase: func(string) ([]byte, error) { return []byte("wrong"), nil }}
	for range 2 {
		_, err = wrong.Dial(t.Context(), cfg)
		e := wantKind(t, err, remote.Auth)
		if strings.Contains(e.Error(), "secret") {
			t.Error("a passphrase in a message")
		}
	}
}

func TestCertificateLogin(t *testing.T) {
	file, public := newKeyFile(t, "")
	ca := remotetest.NewKey(t)
	cert := &ssh.Certificate{Key: public, CertType: ssh.UserCert, ValidPrincipals: []string{"ops"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+"-cert.pub", ssh.MarshalAuthorizedKey(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	_, cfg := strict(t, cert, 3)
	cfg.KeyFiles = []string{file}
	connect(t, cfg)
}

// proves ci-key-format
func TestKeyFormats(t *testing.T) {
	file, public := newKeyFile(t, "")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pem := string(data)
	body := strings.Split(pem, "\n")[1]
	for name, c := range map[string]struct{ text, want string }{
		"crlf":             {strings.ReplaceAll(pem, "\n", "\r\n"), ""},
		"no final newline": {strings.TrimSpace(pem), ""},
		"indented":         {"    " + strings.ReplaceAll(pem, "\n", "\n    "), ""},
		"one line":         {strings.ReplaceAll(pem, "\n", " "), "all on one line"},
		"backslash n":      {strings.ReplaceAll(pem, "\n", `\n`), `\n written out`},
		"path":             {"/home/ops/.ssh/id_ed25519\n", "holds a path"},
		"public":           {string(ssh.MarshalAuthorizedKey(public)), "is a public key"},
		"empty":            {"", "it is empty"},
		"cut off":          {pem[:len(pem)/2], "cut off"},
		"base64":           {base64Of(pem), "base64 copy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, cfg := strict(t, public, 3)
			cfg.KeyFiles = []string{filepath.Join(t.TempDir(), "k")}
			if err := os.WriteFile(cfg.KeyFiles[0], []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			conn, err := sshconn.Dial(context.Background(), cfg)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				return
			}
			e := wantKind(t, err, remote.Auth, c.want, cfg.KeyFiles[0])
			if strings.Contains(e.Error(), body) {
				t.Error("key material in a message")
			}
		})
	}
}
