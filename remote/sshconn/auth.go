package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// identities are the keys offered to one host, in one list: the library uses only the first method of a kind.
type identities struct {
	signers []ssh.Signer
	notes   []string // keys that could not be offered, and why
	agent   net.Conn // open while signers are in use; may be nil
	stop    func() bool
}

func (i *identities) close() {
	if i.agent != nil {
		i.stop()
		_ = i.agent.Close()
	}
}

// gather collects the keys for a host: those that are named first (a server allows few tries), then the agent's.
// waiting is called when a person is asked for a passphrase, and returns what to call afterwards.
func (d *Dialer) gather(ctx context.Context, cfg Config, waiting func() (resume func())) *identities {
	ids := &identities{}
	inAgent := ids.askAgent(ctx, cfg.AgentSocket)
	named := map[string]bool{}
	for _, file := range cfg.KeyFiles {
		key, err := d.keys.load(file)
		if err != nil {
			if !errors.Is(err, errNoKeyFile) {
				ids.notes = append(ids.notes, err.Error())
			} else if !strings.HasPrefix(file[strings.LastIndexByte(file, '/')+1:], "id_") {
				ids.notes = append(ids.notes, "key "+file+" does not exist")
			}
			continue
		}
		signer, note := d.signerFor(file, key, inAgent, waiting)
		if signer == nil {
			ids.notes = append(ids.notes, note)
			continue
		}
		named[string(signer.PublicKey().Marshal())] = true
		ids.signers = append(ids.signers, ids.certified(signer, append(slices.Clone(cfg.CertificateFiles), file+"-cert.pub"))...)
	}
	if cfg.IdentitiesOnly {
		return ids
	}
	for _, s := range inAgent {
		if !named[string(s.PublicKey().Marshal())] {
			ids.signers = append(ids.signers, ids.certified(s, cfg.CertificateFiles)...)
		}
	}
	return ids
}

// askAgent lists the agent's keys; an agent that cannot be reached is noted, not fatal. An agent that does not answer
// is given up with the attempt: signing would wait for it for ever.
func (i *identities) askAgent(ctx context.Context, socket string) []ssh.Signer {
	if socket == "" {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		i.notes = append(i.notes, fmt.Sprintf("cannot reach the agent: %v", err))
		return nil
	}
	i.agent, i.stop = conn, context.AfterFunc(ctx, func() { _ = conn.Close() })
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		i.notes = append(i.notes, fmt.Sprintf("cannot list the agent's keys: %v", err))
	}
	return signers
}

// signerFor finds the private half of a named key: in the file, in the agent, or behind a passphrase.
func (d *Dialer) signerFor(file string, key keyFile, inAgent []ssh.Signer, waiting func() func()) (ssh.Signer, string) {
	if key.signer != nil {
		return key.signer, ""
	}
	if key.public != nil {
		for _, s := range inAgent {
			if bytes.Equal(s.PublicKey().Marshal(), key.public.Marshal()) {
				return s, ""
			}
		}
	}
	switch {
	case !key.encrypted:
		return nil, "key " + file + " is a public key, and its private half is not in the agent"
	case d.Passphrase == nil:
		return nil, "key " + file + " is encrypted and nobody can be asked for its passphrase: run ssh-add " + file + " first"
	case key.public == nil:
		resume := waiting()
		defer resume()
		signer, err := d.keys.unlock(file, d.Passphrase)
		if err != nil {
			return nil, err.Error()
		}
		return signer, ""
	}
	return &lockedSigner{public: key.public, unlock: func() (ssh.Signer, error) {
		resume := waiting()
		defer resume()
		return d.keys.unlock(file, d.Passphrase)
	}}, ""
}

// certified puts the certificates of a key before the key itself.
func (i *identities) certified(s ssh.Signer, files []string) []ssh.Signer {
	var all []ssh.Signer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pub, _, _, _, err := ssh.ParseAuthorizedKey(data)
		cert, ok := pub.(*ssh.Certificate)
		if err != nil || !ok {
			i.notes = append(i.notes, file+" is not a certificate")
			continue
		}
		if signer, err := ssh.NewCertSigner(cert, s); err == nil {
			all = append(all, signer)
		}
	}
	return append(all, s)
}

// lockedSigner is an encrypted key: its passphrase is asked for only if a server accepts the key.
type lockedSigner struct {
	public ssh.PublicKey
	unlock func() (ssh.Signer, error)
}

func (l *lockedSigner) PublicKey() ssh.PublicKey { return l.public }

func (l *lockedSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.SignWithAlgorithm(rand, data, "")
}

func (l *lockedSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := l.unlock()
	if err != nil {
		return nil, err
	}
	if as, ok := s.(ssh.AlgorithmSigner); ok {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}

// explain says why a login failed, in the order in which an operator can do something about it. said is the
// error; cut, that the server ended the connection without one.
func (i *identities) explain(user, said string, cut bool) string {
	n := len(i.signers)
	var text string
	switch {
	case strings.Contains(said, "oo many authentication failures"):
		text = fmt.Sprintf("%d keys offered for user %s and the server allows fewer tries: name the right key "+
			"(ansible_ssh_private_key_file, or IdentityFile with IdentitiesOnly)", n, user)
	case cut:
		text = fmt.Sprintf("the server closed the connection during login of user %s, with %d keys to offer: is the account "+
			"locked or expired, or are fewer tries allowed? Its log says why", user, n)
	case n == 0:
		text = fmt.Sprintf("no key to offer for user %s", user)
	case strings.Contains(said, "unable to authenticate"):
		kinds := make([]string, 0, n)
		for _, s := range i.signers {
			kinds = append(kinds, describe(s.PublicKey()))
		}
		text = fmt.Sprintf("user %s: none of %d keys accepted (%s)", user, n, strings.Join(kinds, ", "))
	default:
		text = fmt.Sprintf("login of user %s failed: %s", user, said)
	}
	return strings.Join(append([]string{text}, i.notes...), "; ")
}
