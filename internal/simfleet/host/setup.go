package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Place puts a file of root on the disk and makes the directories above it.
func (m *Machine) Place(name, text string) error {
	dir := name[:strings.LastIndex(name, "/")]
	if err := m.fs.MkdirAll(memfs.Cred{}, dir, 0o755); err != nil {
		return err
	}
	return m.place(memfs.Cred{}, name, []byte(text), 0o644)
}

// InstallDeb installs a package file's bytes as dpkg does, past every gate: for setting a machine up.
func (m *Machine) InstallDeb(ctx context.Context, data []byte) error {
	d, err := m.w.debs.read(data)
	if err != nil {
		return fmt.Errorf("cannot install package on %s: %w", m.conf.Name, err)
	}
	p, err := m.Proc("root", "dpkg")
	if err != nil {
		return err
	}
	var out strings.Builder
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), &out, &out
	if err := m.install(ctx, p, d.control["Package"], d); err != nil {
		return fmt.Errorf("cannot install package on %s: %w: %s", m.conf.Name, err, out.String())
	}
	return nil
}

// Output is what a command of Run printed and its exit status.
type Output struct {
	Stdout, Stderr string
	Exit           int
}

// Run runs words as a user without any connection, as somebody on the console would.
func (m *Machine) Run(ctx context.Context, user string, words ...string) (Output, error) {
	p, err := m.Proc(user, words...)
	if err != nil {
		return Output{}, err
	}
	var out, errs strings.Builder
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), &out, &errs
	code := m.Exec(ctx, p)
	return Output{out.String(), errs.String(), code}, nil
}

// Shell runs an exec line as sshd does: with the login user's shell.
func (m *Machine) Shell(ctx context.Context, p *shell.Proc, line string) int {
	m.w.Sleep(ctx, m.w.Lat.Command)
	return shell.Main(ctx, m, p.With("sh", "-c", line))
}
