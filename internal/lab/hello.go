//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// HelloDeb is a small package, hello-lab, that has nothing to do with Kibotos.
func (l *Lab) HelloDeb() string { return helloDeb(l.Dir) }

func helloDeb(dir string) string { return filepath.Join(dir, "hello-lab_1.0_all.deb") }

// buildHello packs hello-lab.
func buildHello(ctx context.Context, dir string) error {
	tree, err := os.MkdirTemp("", "kibo-lab-hello-")
	if err != nil {
		return fmt.Errorf("cannot pack hello-lab: %w", err)
	}
	defer func() { _ = os.RemoveAll(tree) }()
	if err := os.Chmod(tree, 0o755); err != nil {
		return fmt.Errorf("cannot pack hello-lab: %w", err)
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return fmt.Errorf("cannot pack hello-lab: %w", err)
	}
	defer func() { _ = root.Close() }()
	control := "Package: hello-lab\nVersion: 1.0\nArchitecture: all\nMaintainer: kibo-rollout lab <lab@example.invalid>\n" +
		"Description: says hello\n A package that has nothing to do with Kibotos.\n"
	if err := putFile(root, "/DEBIAN/control", []byte(control), 0o644); err != nil {
		return err
	}
	if err := putFile(root, "/usr/bin/hello-lab", []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "dpkg-deb", "--root-owner-group", "--build", tree, helloDeb(dir)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot pack hello-lab: %w\n%s", err, output)
	}
	return nil
}
