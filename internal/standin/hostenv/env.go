//go:build linux

// Package hostenv runs the stand-in Kibotos as real processes on a Debian host: real files, a real database, systemd.
package hostenv

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"golang.org/x/sys/unix"
)

// env is this host, for this process.
type env struct {
	ctx            context.Context //nolint:containedctx // one process, one context: standin.Env calls carry none
	stdout, stderr io.Writer
	executable     string
	user           string
}

var _ standin.Env = (*env)(nil)

// New makes the environment of this process; ctx ends what it waits for.
func New(ctx context.Context, stdout, stderr io.Writer) (standin.Env, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find own program: %w", err)
	}
	name := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return &env{ctx: ctx, stdout: stdout, stderr: stderr, executable: exe, user: name}, nil
}

func (e *env) Stdout() io.Writer  { return e.stdout }
func (e *env) Stderr() io.Writer  { return e.stderr }
func (e *env) User() string       { return e.user }
func (e *env) Executable() string { return e.executable }
func (e *env) Now() time.Time     { return time.Now() }

func (e *env) Sleep(d time.Duration) {
	select {
	case <-e.ctx.Done():
	case <-time.After(d):
	}
}

func (e *env) Random(n int) ([]byte, error) {
	out := make([]byte, n)
	_, err := rand.Read(out)
	return out, err
}

func (e *env) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (e *env) WriteFile(path string, data []byte, perm fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, data, perm)
}

func (e *env) ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found, err
}

func (e *env) Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (e *env) TryLock(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, standin.ErrLocked
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}

// callLimit bounds one call to ctrl.
const callLimit = 3 * time.Second

func (e *env) CallCtrl(addr string, req standin.Request) (standin.Response, error) {
	// A node says bye while its process is ending, so the process's own end does not cut the call.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), callLimit)
	defer cancel()
	var resp standin.Response
	body, err := json.Marshal(req)
	if err != nil {
		return resp, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+apiPath, bytes.NewReader(body))
	if err != nil {
		return resp, err
	}
	answer, err := http.DefaultClient.Do(post)
	if err != nil {
		return resp, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return resp, fmt.Errorf("cannot use answer of ctrl: %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, bodyLimit)).Decode(&resp); err != nil {
		return resp, fmt.Errorf("cannot parse answer of ctrl: %w", err)
	}
	return resp, nil
}
