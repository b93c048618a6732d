//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kibotos/kibo-rollout/internal/standin"
)

// Debs is the directory with the .debs of one stand-in release, ready for --debs.
func (l *Lab) Debs(version string) string { return filepath.Join(l.Dir, "debs", version) }

// buildDebs puts the .debs of every release of the stand-in into the lab's directory.
func buildDebs(ctx context.Context, spec Spec) error {
	start := time.Now()
	lock, err := waitLock(ctx, filepath.Join(spec.Cache, "lock-debs"))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	bin := filepath.Join(spec.Cache, "building-bin")
	if err := compileStandin(ctx, spec.Source, bin); err != nil {
		return err
	}
	cached := filepath.Join(spec.Cache, "debs-")
	for _, program := range []string{"standin", "standin-debs"} {
		sum, err := fileSum(filepath.Join(bin, program))
		if err != nil {
			return err
		}
		cached += sum[:8]
	}
	if !exists(cached) {
		if err := packStandin(ctx, spec.Cache, bin, cached); err != nil {
			return err
		}
		spec.Log("packed the stand-in in %s (kept in %s)", since(start), spec.Cache)
	}
	return copyDebs(cached, filepath.Join(spec.Dir, "debs"))
}

// compileStandin builds the stand-in and the program that packs it. Equal source gives equal bytes.
func compileStandin(ctx context.Context, source, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("cannot build the stand-in: %w", err)
	}
	for _, program := range []string{"standin", "standin-debs"} {
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=",
			"-o", filepath.Join(bin, program), "./internal/standin/cmd/"+program)
		build.Dir = source
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build the stand-in: %w\n%s", err, lastLines(string(output), 15))
		}
	}
	return nil
}

// packStandin packs every release into the cache. Only the packages of the last builds are kept there.
func packStandin(ctx context.Context, cache, bin, cached string) error {
	old, err := filepath.Glob(filepath.Join(cache, "debs-*"))
	if err != nil {
		return fmt.Errorf("cannot list the lab's cache: %w", err)
	}
	slices.SortFunc(old, func(a, b string) int { return modified(b).Compare(modified(a)) })
	const kept = 2
	for _, dir := range old[min(kept, len(old)):] {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	building := filepath.Join(cache, "building-debs")
	if err := removeTree(building); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2) // packing is compressing, and hosts may be booting at the same time
	for _, key := range standin.Keys() {
		group.Go(func() error {
			pack := exec.CommandContext(ctx, filepath.Join(bin, "standin-debs"), "-out", building,
				"-binary", filepath.Join(bin, "standin"), "-version", key)
			if output, err := pack.CombinedOutput(); err != nil {
				return fmt.Errorf("cannot pack the stand-in: %w\n%s", err, lastLines(string(output), 15))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := os.Rename(building, cached); err != nil {
		return fmt.Errorf("cannot keep the stand-in's packages: %w", err)
	}
	return nil
}

// copyDebs makes the lab's packages those of the cache.
func copyDebs(from, to string) error {
	if err := removeTree(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("cannot copy the stand-in's packages: %w", err)
	}
	return nil
}

// modified is when a file was last changed; a file that is gone is the oldest.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || info == nil {
		return time.Time{}
	}
	return info.ModTime()
}

// fileSum is the SHA-256 of a file in hex.
func fileSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
