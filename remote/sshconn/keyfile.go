package sshconn

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// keyFile is what a named key file holds. One of the two is set; both if the private half is encrypted
// and the public half is known.
type keyFile struct {
	signer    ssh.Signer    // usable private key
	public    ssh.PublicKey // public half, if no signer
	encrypted bool
}

// errNoKeyFile is a key file that does not exist: the default names are many, and few exist.
var errNoKeyFile = errors.New("no such file")

// parseKey reads a private or public key as it may arrive: with CRLF, indented, without a final newline. For
// anything else the defect is named; key material never is part of the message.
func parseKey(data []byte) (keyFile, error) {
	data = tidyKey(data)
	signer, err := ssh.ParsePrivateKey(data)
	if err == nil {
		return keyFile{signer: signer}, nil
	}
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		return keyFile{public: missing.PublicKey, encrypted: true}, nil
	}
	if pub, _, _, _, perr := ssh.ParseAuthorizedKey(data); perr == nil {
		return keyFile{public: pub}, nil
	}
	return keyFile{}, errors.New(keyDefect(data))
}

// tidyKey undoes what copying a key through a form or a secret store does to its lines.
func tidyKey(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var tidy []string
	for line := range strings.Lines(strings.ReplaceAll(string(data), "\r", "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			tidy = append(tidy, line)
		}
	}
	if len(tidy) > 2 && strings.HasPrefix(tidy[1], "Proc-Type:") { // the blank line after PEM headers has a meaning
		for i := 1; i < len(tidy); i++ {
			if !strings.Contains(tidy[i], ":") {
				tidy = append(tidy[:i], append([]string{""}, tidy[i:]...)...)
				break
			}
		}
	}
	return []byte(strings.Join(tidy, "\n") + "\n")
}

func keyDefect(data []byte) string {
	text := strings.TrimSpace(string(data))
	switch {
	case text == "":
		return "it is empty"
	case strings.Contains(text, `\n`):
		return `it has \n written out instead of line ends: the secret was escaped on its way`
	case strings.HasPrefix(text, "-----BEGIN") && !strings.Contains(text, "\n"):
		return "it is all on one line: the line ends were lost on the way"
	case strings.HasPrefix(text, "-----BEGIN") && !strings.Contains(text, "-----END"):
		return "it is cut off: there is no END line"
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return "it is a PuTTY key: convert it with puttygen KEY -O private-openssh"
	case !strings.Contains(text, "\n") && strings.HasPrefix(text, "/"):
		return "it holds a path, not a key"
	}
	if raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", "")); err == nil && bytes.Contains(raw, []byte("-----BEGIN")) {
		return "it is a base64 copy of a key file: decode it first"
	}
	return "it is neither a private nor a public key"
}

// keyring reads each key file once and asks for each passphrase once.
type keyring struct {
	mu    sync.Mutex
	files map[string]keyFile

	asking sync.Mutex // held while a person is asked
	asked  map[string]bool
}

func (k *keyring) load(file string) (keyFile, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.files[file]; ok {
		return known, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return keyFile{}, errNoKeyFile
	}
	if err != nil {
		return keyFile{}, err
	}
	key, err := parseKey(data)
	if err != nil {
		return keyFile{}, fmt.Errorf("cannot use key %s: %w", file, err)
	}
	if key.encrypted && key.public == nil { // old formats keep the public half in a file of its own
		if pub, err := os.ReadFile(file + ".pub"); err == nil {
			key.public, _, _, _, _ = ssh.ParseAuthorizedKey(pub)
		}
	}
	if k.files == nil {
		k.files = map[string]keyFile{}
	}
	k.files[file] = key
	return key, nil
}

// unlock decrypts a key file, asking once for its passphrase however many hosts need it. While a person types, keys
// that need no passphrase stay usable.
func (k *keyring) unlock(file string, ask func(string) ([]byte, error)) (ssh.Signer, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	if known, ok := k.known(file); ok && known.signer != nil {
		return known.signer, nil
	}
	if k.asked[file] {
		return nil, fmt.Errorf("cannot decrypt key %s: the passphrase given was wrong", file)
	}
	if k.asked == nil {
		k.asked = map[string]bool{}
	}
	k.asked[file] = true
	passphrase, err := ask(file)
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the passphrase of key %s: %w", file, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(tidyKey(data), passphrase)
	if err != nil {
		return nil, fmt.Errorf("cannot decrypt key %s: wrong passphrase", file)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files[file] = keyFile{signer: signer}
	return signer, nil
}

func (k *keyring) known(file string) (keyFile, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.files[file]
	return known, ok
}
