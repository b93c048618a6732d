package sshconn

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"al.essio.dev/pkg/shellescape"
	"golang.org/x/crypto/ssh"
)

// hostKeyError is a host that is not, or cannot be shown to be, the one meant.
type hostKeyError struct {
	text string
	next string
}

func (e *hostKeyError) Error() string { return e.text }

// hostCheck verifies the key of one host against the known_hosts lines that are about it.
type hostCheck struct {
	cfg   Config
	name  string      // as in known_hosts
	lines []knownLine // about name
	plain []knownLine // about the host without its port, used as ssh does: only if they fit
	now   time.Time
	add   func(key ssh.PublicKey) error

	accepted atomic.Bool // the host proved to be the one meant
}

func newHostCheck(d *Dialer, cfg Config) (*hostCheck, error) {
	all, err := d.hosts.lines(cfg.KnownHosts, d.notice)
	if err != nil {
		return nil, err
	}
	h := &hostCheck{cfg: cfg, now: d.now()}
	plain := knownName(cfg.Address, 0)
	h.name = knownName(cfg.Address, cfg.Port)
	if cfg.HostKeyAlias != "" {
		plain = knownName(cfg.HostKeyAlias, 0)
		h.name = plain
	}
	for _, l := range all {
		switch {
		case l.matches(h.name):
			h.lines = append(h.lines, l)
		case plain != h.name && l.matches(plain):
			h.plain = append(h.plain, l)
		}
	}
	h.add = func(key ssh.PublicKey) error {
		if len(cfg.KnownHosts) == 0 {
			return errors.New("cannot record host key: no known_hosts file is named")
		}
		if err := d.hosts.record(cfg.KnownHosts[0], h.name, key); err != nil {
			return err
		}
		d.notice(fmt.Sprintf("host %s: new host key %s recorded in %s", cfg.Host, describe(key), cfg.KnownHosts[0]))
		return nil
	}
	return h, nil
}

func describe(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// algorithms are the host key algorithms to ask for: first those that can be verified, so that a host with
// several keys shows the one on file; then the others, so that a host with a new kind of key is
// told apart from one that does not answer.
func (h *hostCheck) algorithms() ([]string, error) {
	supported := ssh.SupportedAlgorithms().HostKeys
	var first, rest []string
	for _, algo := range supported {
		cert := strings.Contains(algo, "-cert-v01@")
		known := slices.ContainsFunc(slices.Concat(h.lines, h.plain), func(l knownLine) bool {
			if l.marker == markerCA {
				return cert
			}
			return l.marker == "" && !cert && keyTypeOf(algo) == l.key.Type()
		})
		switch {
		case known:
			first = append(first, algo)
		case !cert: // a certificate that nobody here can verify is of no use
			rest = append(rest, algo)
		}
	}
	return allowed(slices.Concat(first, rest), h.cfg.HostKeyAlgorithms, "host key algorithms")
}

// keyTypeOf is the type of the keys that an algorithm signs with.
func keyTypeOf(algo string) string {
	if algo == ssh.KeyAlgoRSASHA256 || algo == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algo
}

// allowed keeps of ours what wanted names, in our order. An empty wanted allows all.
func allowed(ours, wanted []string, what string) ([]string, error) {
	if len(wanted) == 0 {
		return ours, nil
	}
	kept := slices.DeleteFunc(slices.Clone(ours), func(a string) bool { return !slices.Contains(wanted, a) })
	if len(kept) == 0 {
		return nil, fmt.Errorf("cannot use %s %s: none is supported here", what, strings.Join(wanted, ","))
	}
	return kept, nil
}

// callback is the ssh.HostKeyCallback.
func (h *hostCheck) callback(address string, from net.Addr, key ssh.PublicKey) error {
	err := h.verify(address, from, key)
	h.accepted.Store(err == nil)
	return err
}

// verify trusts nothing that it was not told to trust.
func (h *hostCheck) verify(_ string, _ net.Addr, key ssh.PublicKey) error {
	if err := h.revoked(key); err != nil {
		return err
	}
	if err := h.short(key); err != nil {
		return err
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		if l, ok := h.authority(cert); ok {
			return h.verifyCert(cert, l)
		}
		key = cert.Key
	}
	var other *knownLine
	for i, l := range h.lines {
		if l.marker != "" {
			continue
		}
		if bytes.Equal(l.key.Marshal(), key.Marshal()) {
			return nil
		}
		if other == nil || l.key.Type() == key.Type() {
			other = &h.lines[i]
		}
	}
	if other != nil {
		return h.changed(key, *other)
	}
	for _, l := range h.plain {
		if l.marker == "" && bytes.Equal(l.key.Marshal(), key.Marshal()) {
			return nil
		}
	}
	if h.cfg.HostKeys == AcceptNew {
		return h.add(key)
	}
	return h.unknown(key)
}

func (h *hostCheck) revoked(key ssh.PublicKey) error {
	keys := []ssh.PublicKey{key}
	if cert, ok := key.(*ssh.Certificate); ok {
		keys = []ssh.PublicKey{cert.Key, cert.SignatureKey}
	}
	for _, l := range slices.Concat(h.lines, h.plain) {
		for _, k := range keys {
			if l.marker == markerRevoked && bytes.Equal(l.key.Marshal(), k.Marshal()) {
				return &hostKeyError{text: fmt.Sprintf("host key %s is revoked (%s)", describe(k), l.at())}
			}
		}
	}
	return nil
}

// short refuses RSA keys that the operator calls too short.
func (h *hostCheck) short(key ssh.PublicKey) error {
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	crypto, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return nil
	}
	if k, ok := crypto.CryptoPublicKey().(*rsa.PublicKey); ok && k.N.BitLen() < h.cfg.MinRSABits {
		return &hostKeyError{text: fmt.Sprintf("host key %s has %d bits, and RequiredRSASize is %d", describe(key), k.N.BitLen(), h.cfg.MinRSABits)}
	}
	return nil
}

func (h *hostCheck) authority(cert *ssh.Certificate) (knownLine, bool) {
	for _, l := range slices.Concat(h.lines, h.plain) {
		if l.marker == markerCA && bytes.Equal(l.key.Marshal(), cert.SignatureKey.Marshal()) {
			return l, true
		}
	}
	return knownLine{}, false
}

func (h *hostCheck) verifyCert(cert *ssh.Certificate, ca knownLine) error {
	name := h.cfg.HostKeyAlias
	if name == "" {
		name = knownName(h.cfg.Address, 0)
	}
	if cert.ValidBefore != uint64(ssh.CertTimeInfinity) && h.now.Unix() >= int64(cert.ValidBefore) { //nolint:gosec // compared, not used
		return &hostKeyError{text: fmt.Sprintf("host certificate %q (%s) expired at %s", cert.KeyId, ca.at(),
			time.Unix(int64(cert.ValidBefore), 0).UTC().Format(time.RFC3339))} //nolint:gosec // shown only
	}
	checker := ssh.CertChecker{
		IsHostAuthority: func(auth ssh.PublicKey, _ string) bool {
			return bytes.Equal(auth.Marshal(), ca.key.Marshal())
		},
		Clock: func() time.Time { return h.now },
	}
	if err := checker.CheckHostKey(net.JoinHostPort(name, strconv.Itoa(h.cfg.Port)), nil, cert); err != nil {
		return &hostKeyError{text: fmt.Sprintf("cannot trust host certificate %q (%s): %v", cert.KeyId, ca.at(), err)}
	}
	return nil
}

func (h *hostCheck) changed(key ssh.PublicKey, l knownLine) error {
	what := "does not match"
	if l.key.Type() != key.Type() {
		what = "is of another kind than"
	}
	return &hostKeyError{
		text: fmt.Sprintf("host key %s %s the one on file, %s (%s): the host was reinstalled, or this is not the host",
			describe(key), what, describe(l.key), l.at()),
		next: fmt.Sprintf("ssh-keygen -R %s -f %s   # only once the new fingerprint is confirmed by another way",
			shellescape.Quote(h.name), shellescape.Quote(l.file)),
	}
}

func (h *hostCheck) unknown(key ssh.PublicKey) error {
	tried, file := "no known_hosts file is named", "~/.ssh/known_hosts"
	if len(h.cfg.KnownHosts) > 0 {
		tried, file = "looked for "+h.name+" in "+strings.Join(h.cfg.KnownHosts, ", "), h.cfg.KnownHosts[0]
	}
	scan := fmt.Sprintf("ssh-keyscan -p %d %s", h.cfg.Port, shellescape.Quote(strings.TrimSuffix(h.cfg.Address, ".")))
	if h.cfg.HostKeyAlias != "" {
		scan += " | sed " + shellescape.Quote("s|^[^ ]*|"+h.cfg.HostKeyAlias+"|")
	}
	return &hostKeyError{
		text: fmt.Sprintf("host key %s is unknown: %s", describe(key), tried),
		next: fmt.Sprintf("%s >> %s   # then compare the fingerprint with the host's own: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", scan, shellescape.Quote(file)),
	}
}
