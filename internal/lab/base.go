//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

//go:embed customize.sh
var customizeScript string

// basePackages is what every host has beside Debian's essential packages.
func basePackages() []string {
	return []string{"systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3-minimal", "iproute2",
		"ca-certificates", "util-linux"}
}

// baseName names the base of a suite by everything that goes into it: another package list is another base.
func baseName(suite string) string {
	sum := sha256.Sum256([]byte(strings.Join(basePackages(), ",") + "\n" + customizeScript))
	return "base-" + suite + "-" + hex.EncodeToString(sum[:])[:12]
}

// bases makes sure that the base of every wanted suite is in the cache, and returns suite → directory.
func bases(ctx context.Context, spec Spec) (map[string]string, error) {
	paths := map[string]string{}
	for _, host := range spec.Hosts {
		paths[host.Suite] = filepath.Join(spec.Cache, baseName(host.Suite))
	}
	if err := os.MkdirAll(spec.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the lab's cache: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for suite, path := range paths {
		group.Go(func() error { return ensureBase(ctx, spec, suite, path) })
	}
	return paths, group.Wait()
}

// ensureBase builds one base unless it is there. Two labs at once build it once.
func ensureBase(ctx context.Context, spec Spec, suite, path string) error {
	if exists(path) {
		return nil
	}
	lock, err := waitLock(ctx, filepath.Join(spec.Cache, "lock-"+suite))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if exists(path) {
		return nil
	}
	start := time.Now()
	spec.Log("building the base of Debian %s (once; kept in %s)", suite, spec.Cache)
	if err := sweepCache(spec.Cache, suite); err != nil {
		return err
	}
	building := filepath.Join(spec.Cache, "building-"+suite)
	if err := buildBase(ctx, spec.Cache, suite, building); err != nil {
		return err
	}
	if err := os.Rename(building, path); err != nil {
		return fmt.Errorf("cannot put the base of %s in place: %w", suite, err)
	}
	spec.Log("built the base of Debian %s in %s", suite, time.Since(start).Round(time.Second))
	return nil
}

// buildBase runs mmdebstrap.
func buildBase(ctx context.Context, cache, suite, dir string) error {
	hook := filepath.Join(cache, "customize-"+suite+".sh")
	if err := os.WriteFile(hook, []byte(customizeScript), 0o755); err != nil {
		return fmt.Errorf("cannot write %s: %w", hook, err)
	}
	defer func() { _ = os.Remove(hook) }()
	argv := []string{"--mode=root", "--variant=minbase", "--include=" + strings.Join(basePackages(), ","),
		"--customize-hook=" + hook}
	// A machine that takes its packages from a frozen mirror says so in its own apt configuration.
	for _, option := range []string{"Acquire::Check-Valid-Until", "Acquire::Check-Date"} {
		value, err := exec.CommandContext(ctx, "apt-config", "dump", "--format=%v%n", option).Output()
		if err == nil && strings.TrimSpace(string(value)) == "false" {
			argv = append(argv, `--aptopt=`+option+` "false"`)
		}
	}
	build := exec.CommandContext(ctx, "mmdebstrap", append(argv, suite, dir)...)
	build.Cancel = func() error { return build.Process.Signal(unix.SIGTERM) } // it unmounts what it mounted
	build.WaitDelay = 20 * time.Second
	output, err := build.CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot build the base of Debian %s: %w\n%s", suite, err, lastLines(string(output), 15))
	}
	return nil
}

// sweepCache removes what an interrupted build left, and bases of the suite that nothing is mounted on.
func sweepCache(cache, suite string) error {
	if err := removeTree(filepath.Join(cache, "building-"+suite)); err != nil {
		return err
	}
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(cache, "base-"+suite+"-*"))
	if err != nil {
		return fmt.Errorf("cannot list the lab's cache: %w", err)
	}
	for _, base := range old {
		if mounts.lower(base) {
			continue
		}
		if err := removeTree(base); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether there is something at the path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// lastLines keeps the end of a program's output.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
