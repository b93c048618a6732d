package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// env is the surroundings of one stand-in program on a machine.
type env struct {
	m   *Machine
	ctx context.Context // of the program's run; standin.Env has no contexts
	p   *shell.Proc
}

var _ standin.Env = (*env)(nil)

func (e *env) Stdout() io.Writer     { return e.p.Stdout }
func (e *env) Stderr() io.Writer     { return e.p.Stderr }
func (e *env) User() string          { return e.p.User }
func (e *env) Executable() string    { return e.p.Args[0] }
func (e *env) Now() time.Time        { return e.m.w.Now() }
func (e *env) Sleep(d time.Duration) { e.m.w.Sleep(e.ctx, d) }

func (e *env) Random(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(e.m.w.Random, b)
	return b, err
}

func (e *env) CallCtrl(addr string, req standin.Request) (standin.Response, error) {
	return e.m.w.call(addr, req)
}

func (e *env) ReadFile(name string) ([]byte, error) { return e.m.fs.ReadFile(e.p.Cred, name) }

func (e *env) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if err := e.m.fs.MkdirAll(e.p.Cred, path.Dir(name), 0o755); err != nil {
		return err
	}
	return e.m.place(e.p.Cred, name, data, perm)
}

// place replaces a file in one step: a temporary name, then a rename.
func (m *Machine) place(c memfs.Cred, name string, data []byte, perm fs.FileMode) error {
	tmp := name + ".new"
	_ = m.fs.Remove(c, tmp)
	if err := m.fs.WriteFile(c, tmp, data, perm); err != nil {
		return err
	}
	return m.fs.Rename(c, tmp, name)
}

func (e *env) ReadDir(name string) ([]string, error) {
	infos, err := e.m.fs.ReadDir(e.p.Cred, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, err
}

func (e *env) Remove(name string) error {
	err := e.m.fs.Remove(e.p.Cred, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (e *env) TryLock(name string) (io.Closer, error) {
	if err := e.m.fs.MkdirAll(e.p.Cred, path.Dir(name), 0o755); err != nil {
		return nil, err
	}
	if _, err := e.m.fs.Open(e.p.Cred, name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	l, ok := e.m.tryLock(name)
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, standin.ErrLocked)
	}
	return l, nil
}

func (e *env) Unit(name string) (standin.Unit, error) { return standinUnit(e.m.Unit(name)), nil }

func standinUnit(u Unit) standin.Unit {
	return standin.Unit{
		Name: u.Name, Active: u.Active, MainPID: u.MainPID, Processes: u.Processes, Start: fmt.Sprint(u.Start),
	}
}

func (e *env) StartUnit(spec standin.UnitSpec) (standin.Unit, error) {
	u, err := e.m.startTransient(spec.Name, spec.Description, spec.Argv)
	return standinUnit(u), err
}

func (e *env) StopUnit(name string) error {
	err := e.m.StopUnit(e.ctx, name)
	if errors.Is(err, errNoUnit) {
		return nil
	}
	return err
}
