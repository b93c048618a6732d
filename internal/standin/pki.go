package standin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The PKI of the stand-in is a key and one certificate made with it: enough to be whole or broken.
func pkiPaths(state string) (key, cert string) {
	return path.Join(state, "pki/ca.key"), path.Join(state, "pki/ctrl.crt")
}

func certificate(key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("ctrl"))
	return hex.EncodeToString(mac.Sum(nil))
}

// checkPKI loads the PKI and checks that its pieces belong together.
func checkPKI(env Env, state string) error {
	keyPath, certPath := pkiPaths(state)
	key, err := env.ReadFile(keyPath)
	if err != nil {
		return fmt.Errorf("cannot load PKI: %w", err)
	}
	cert, err := env.ReadFile(certPath)
	if err != nil {
		return fmt.Errorf("cannot load PKI: %w", err)
	}
	if strings.TrimSpace(string(cert)) != certificate(strings.TrimSpace(string(key))) {
		return errors.New("cannot use PKI: the certificate of ctrl was not made with the key")
	}
	return nil
}

// makePKI makes the PKI at ctrl's first start.
func makePKI(env Env, state string) error {
	keyPath, certPath := pkiPaths(state)
	if _, err := env.ReadFile(keyPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	random, err := env.Random(32)
	if err != nil {
		return fmt.Errorf("cannot make PKI: %w", err)
	}
	key := hex.EncodeToString(random)
	if err := env.WriteFile(keyPath, []byte(key+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot make PKI: %w", err)
	}
	if err := env.WriteFile(certPath, []byte(certificate(key)+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot make PKI: %w", err)
	}
	return nil
}
