package sshconn_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// newKeyFile writes a private key and returns its file and public half.
func newKeyFile(t *testing.T, passphrase string) (string, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "test")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return file, signer.PublicKey()
}

// configFor reaches a server with a new key.
func configFor(t *testing.T, s *remotetest.Server) sshconn.Config {
	t.Helper()
	file, _ := newKeyFile(t, "")
	return sshconn.Config{
		Host: "node-a", Address: s.Address, Port: s.Port, User: "ops",
		KeyFiles: []string{file}, KnownHosts: []string{s.KnownHosts()},
	}
}

func connect(t *testing.T, cfg sshconn.Config) *sshconn.Conn {
	t.Helper()
	conn, err := sshconn.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// proves that the connection keeps the promises of remote.Conn on hosts of every kind: sftp-no-subsystem,
// ssh-bashrc-noise, MaxSessions 1
func TestConformance(t *testing.T) {
	for name, o := range map[string]remotetest.ServerOptions{
		"plain":         {},
		"no sftp":       {NoSFTP: true},
		"noisy":         {Noise: "Welcome to PROD\nauthorised use only\n"},
		"one session":   {MaxSessions: 1},
		"no line ended": {Noise: "no line end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remotetest.Conformance(t, func(t *testing.T) remote.Conn {
				return connect(t, configFor(t, remotetest.NewServer(t, o)))
			})
		})
	}
}
