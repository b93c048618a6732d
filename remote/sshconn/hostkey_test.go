package sshconn

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

func signerOf(t *testing.T, private any, err error) ssh.Signer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newED25519(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return signerOf(t, private, err)
}

func newECDSA(t *testing.T) ssh.Signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return signerOf(t, private, err)
}

// known writes a known_hosts file of "NAMES" and key pairs; names may start with a marker.
func known(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func line(names string, s ssh.Signer) string {
	return names + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

func check(t *testing.T, cfg Config) *hostCheck {
	t.Helper()
	h, err := newHostCheck(&Dialer{}, cfg.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// keys of the fixtures
const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvnGkRELeb+Auf75WhV9Ls2IQ84frJgP6hCVfcheDDn"
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOpdESM6Gu4VH1R6ra96JpRQwyCedwVFsV8cbG2DqB2k"
)

func parse(t *testing.T, text string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// proves ssh-kh-bad-line, ssh-kh-ipv6, ssh-kh-port-and-case
func TestKnownHostsFixtures(t *testing.T) {
	for _, c := range []struct {
		file, address string
		port          int
		key, want     string // want: empty if accepted, else part of the error
	}{
		{"ssh-kh-bad-line/known_hosts.bom-first-host", "node-a.example.net", 22, keyA, ""},
		{"ssh-kh-bad-line/known_hosts.truncated", "node-a.example.net", 22, keyA, ""},
		{"ssh-kh-bad-line/known_hosts.truncated", "node-b.example.net", 22, keyB, "unknown"},
		{"ssh-kh-bad-line/known_hosts.merge-conflict", "node-a.example.net", 22, keyA, ""},
		{"ssh-kh-bad-line/known_hosts.ssh1", "node-a.example.net", 22, keyA, ""},
		{"ssh-kh-bad-line/known_hosts.crlf", "node-a.example.net", 22, keyA, ""},
		{"ssh-kh-bad-line/known_hosts.crlf", "node-b.example.net", 22, keyB, ""},
		{"ssh-kh-bad-line/known_hosts.crlf", "node-b.example.net", 22, keyA, "does not match"},
		{"ssh-kh-bad-line/known_hosts.revoked", "node-a.example.net", 22, keyA, "revoked"},
		{"ssh-kh-ipv6/known_hosts.bracket-no-port", "2001:db8::11", 22, keyA, ""},
		{"ssh-kh-ipv6/known_hosts.bracket-no-port", "node-b.example.net", 22, keyB, ""},
		{"ssh-kh-ipv6/known_hosts.full-form", "2001:DB8::11", 22, keyA, ""},
		{"ssh-kh-ipv6/known_hosts.port", "2001:db8:0::11", 2222, keyA, ""},
		{"ssh-kh-ipv6/known_hosts.port", "2001:db8::11", 22, keyA, "unknown"},
		{"ssh-kh-port-and-case/known_hosts", "node-a.example.net", 2222, keyA, ""},
		{"ssh-kh-port-and-case/known_hosts", "node-a.example.net", 22, keyA, "unknown"},
		{"ssh-kh-port-and-case/known_hosts", "Node-B.Example.NET", 22, keyB, ""},
		{"ssh-kh-port-and-case/known_hosts", "node-b.example.net.", 22, keyB, ""},
		{"ssh-kh-port-and-case/known_hosts", "node-b.example.net", 2222, keyB, ""}, // as ssh: its line without port fits
		{"ssh-kh-port-and-case/known_hosts", "node-b.example.net", 2222, keyA, "unknown"},
		{"ssh-kh-port-and-case/no-such-file", "node-a.example.net", 22, keyA, "unknown"},
	} {
		t.Run(c.file+" "+c.address, func(t *testing.T) {
			h := check(t, Config{Host: "h", Address: c.address, Port: c.port, KnownHosts: []string{filepath.Join("testdata", c.file)}})
			err := h.verify("", nil, parse(t, c.key))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// proves that skipped lines are reported with their place
func TestKnownHostsWarnings(t *testing.T) {
	var notices []string
	d := &Dialer{Notice: func(s string) { notices = append(notices, s) }}
	file := filepath.Join("testdata", "ssh-kh-bad-line", "known_hosts.merge-conflict")
	for range 2 {
		if _, err := newHostCheck(d, Config{KnownHosts: []string{file}}.withDefaults()); err != nil {
			t.Fatal(err)
		}
	}
	if len(notices) != 3 || !strings.Contains(notices[0], file+":1: line skipped") {
		t.Errorf("got %q, want the three lines of the conflict, once", notices)
	}
}

func TestKnownHostsPatterns(t *testing.T) {
	key := newED25519(t)
	for _, c := range []struct {
		names, address string
		port           int
		want           bool
	}{
		{"*.example.net", "a.example.net", 22, true},
		{"*.example.net,!b.example.net", "b.example.net", 22, false},
		{"node-?", "node-a", 22, true},
		{"node-?", "node-ab", 22, false},
		{"*", "anything", 2222, true},
		{"a,b,c", "b", 22, true},
		{xknownhosts.HashHostname("node-a"), "NODE-A", 22, true},
		{xknownhosts.HashHostname("[node-a]:2222"), "node-a", 2222, true},
		{xknownhosts.HashHostname("[node-a]:2222"), "node-a", 22, false},
		{"|1|broken", "node-a", 22, false},
	} {
		h := check(t, Config{Address: c.address, Port: c.port, KnownHosts: []string{known(t, line(c.names, key))}})
		if got := h.verify("", nil, key.PublicKey()) == nil; got != c.want {
			t.Errorf("%s for %s:%d: accepted %v, want %v", c.names, c.address, c.port, got, c.want)
		}
	}
}

// proves ssh-hostkey-alg
func TestAlgorithmsOnFileComeFirst(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"ed25519": {"testdata/ssh-hostkey-alg/known_hosts", ssh.KeyAlgoED25519},
		"rsa":     {"testdata/ssh-hostkey-alg/known_hosts.rsa-only", ssh.KeyAlgoRSASHA256},
		"ca":      {known(t, line("@cert-authority *.example.net", newECDSA(t))), "cert-v01"},
	} {
		algos, err := check(t, Config{Address: "node-a.example.net", KnownHosts: []string{c.file}}).algorithms()
		if err != nil || !strings.Contains(algos[0]+algos[1], c.want) {
			t.Errorf("%s: got %v, %v", name, algos, err)
		}
		if name != "ca" && strings.Contains(strings.Join(algos, " "), "-cert-") {
			t.Errorf("%s: certificates asked for that nobody can verify: %v", name, algos)
		}
	}
	if _, err := check(t, Config{Address: "x", HostKeyAlgorithms: []string{"no-such"}}).algorithms(); err == nil {
		t.Error("an algorithm that is not supported was accepted")
	}
}

func certify(t *testing.T, ca, key ssh.Signer, before uint64, names ...string) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: key.PublicKey(), CertType: ssh.HostCert, KeyId: "test host", ValidPrincipals: names, ValidBefore: before,
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return cert
}

// proves ssh-kh-certauthority
func TestCertAuthority(t *testing.T) {
	ca, key, own := newECDSA(t), newED25519(t), newED25519(t)
	file := known(t, line("@cert-authority *.example.net", ca), line("node-plain.example.net", own))
	past := uint64(time.Now().Add(-time.Hour).Unix()) //nolint:gosec // positive
	for _, c := range []struct {
		address string
		key     ssh.PublicKey
		want    string
	}{
		{"node-cert.example.net", certify(t, ca, key, ssh.CertTimeInfinity, "node-cert.example.net"), ""},
		{"Node-Cert.example.net.", certify(t, ca, key, ssh.CertTimeInfinity, "node-cert.example.net"), ""},
		{"node-plain.example.net", own.PublicKey(), ""},
		{"node-other.example.net", own.PublicKey(), "is unknown"},
		{"node-exp.example.net", certify(t, ca, key, past, "node-exp.example.net"), "expired at 2"},
		{"node-name.example.net", certify(t, ca, key, ssh.CertTimeInfinity, "another"), "cannot trust"},
		{"node-ca.example.net", certify(t, newECDSA(t), key, ssh.CertTimeInfinity, "node-ca.example.net"), "is unknown"},
	} {
		h := check(t, Config{Address: c.address, KnownHosts: []string{file}})
		err := h.verify("", nil, c.key)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.address, err, c.want)
		}
	}
	revoked := known(t, line("@cert-authority *", ca), line("@revoked *", ca))
	err := check(t, Config{Address: "x", KnownHosts: []string{revoked}}).verify("", nil, certify(t, ca, key, ssh.CertTimeInfinity, "x"))
	if err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("a revoked authority: %v", err)
	}
}

// proves ssh-kh-strict-yes, and that a recorded host is found again and recorded once
func TestAcceptNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "known_hosts")
	key := newED25519(t)
	cfg := Config{Host: "node-a", Address: "Node-A.example.net", Port: 2222, KnownHosts: []string{file}}.withDefaults()
	d := &Dialer{}
	h, err := newHostCheck(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var refused *hostKeyError
	if err := h.verify("", nil, key.PublicKey()); !errors.As(err, &refused) || refused.next == "" ||
		!strings.Contains(refused.text, ssh.FingerprintSHA256(key.PublicKey())) || !strings.Contains(refused.text, file) {
		t.Errorf("strict: got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a strict check wrote a file")
	}
	var notices []string
	d.Notice = func(s string) { notices = append(notices, s) }
	cfg.HostKeys = AcceptNew
	for range 3 {
		h, err := newHostCheck(d, cfg)
		if err == nil {
			err = h.verify("", nil, key.PublicKey())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(file)
	if string(data) != line("[node-a.example.net]:2222", key)+"\n" {
		t.Errorf("recorded %q", data)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], ssh.FingerprintSHA256(key.PublicKey())) {
		t.Errorf("notices %q", notices)
	}
	h, err = newHostCheck(&Dialer{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.verify("", nil, newED25519(t).PublicKey()); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Errorf("accept-new took a changed key: %v", err)
	}
}

func FuzzParseKnownHosts(f *testing.F) {
	f.Add("node-a " + keyA + "\n@revoked b " + keyB + "\n# c\n")
	f.Add("@cert-authority *.x,!y.x " + keyA)
	f.Add("|1|AAAA|BBBB " + keyA + "\r\n\xef\xbb\xbf[::1]:22 " + keyB)
	f.Fuzz(func(t *testing.T, text string) {
		lines, _ := parseKnownHosts("f", []byte(text))
		for _, l := range lines {
			if l.key == nil || len(l.names) == 0 {
				t.Fatalf("a line without key or names: %+v", l)
			}
			l.matches("node-a")
			l.matches("[2001:db8::1]:2222")
		}
	})
}
