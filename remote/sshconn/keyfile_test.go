package sshconn

import (
	"crypto/ed25519"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"
)

// proves that whatever a key file holds is either usable or named, and never crashes
func FuzzParseKey(f *testing.F) {
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pem.EncodeToMemory(block))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte("ssh-ed25519 AAAA"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := parseKey(data)
		if err == nil && key.signer == nil && key.public == nil && !key.encrypted {
			t.Fatal("neither a key nor an error")
		}
	})
}

// proves that settings printed by ssh are read in order, whatever else is printed
func FuzzParseDump(f *testing.F) {
	f.Add("hostname a\nidentityfile x\nidentityfile y\n\nport\n")
	f.Fuzz(func(t *testing.T, text string) {
		for key, values := range parseDump(text) {
			if len(values) == 0 {
				t.Fatalf("%q without a value", key)
			}
		}
	})
}
