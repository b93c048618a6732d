//go:build linux

package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// keyPath is the private key that lets clients in.
func (l *Lab) keyPath() string { return filepath.Join(l.Dir, "id_ed25519") }

// hostKeyPath is the private host key of a host; it outlives the host's being made anew.
func (l *Lab) hostKeyPath(name string) string { return filepath.Join(l.Dir, "keys", name) }

// ensureKey makes an ed25519 key pair unless it is there, and returns the public key.
func ensureKey(path, comment string) (ssh.PublicKey, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		data, err = makeKey(path, comment)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make key %s: %w", path, err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read key %s: %w", path, err)
	}
	public := ssh.MarshalAuthorizedKey(signer.PublicKey())
	if err := os.WriteFile(path+".pub", public, 0o644); err != nil {
		return nil, fmt.Errorf("cannot write public key: %w", err)
	}
	return signer.PublicKey(), nil
}

// makeKey writes a new private key in OpenSSH's form.
func makeKey(path, comment string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(block)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return nil, err
	}
	return data, os.Rename(path+".new", path)
}

// fileStat is what the kernel says of a file.
func fileStat(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	raw, ok := info.Sys().(*syscall.Stat_t)
	return raw, ok
}
