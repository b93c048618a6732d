// Command standin-debs packs the stand-in Kibotos: every version that tests need, as real .debs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
	"github.com/kibotos/kibo-rollout/internal/standin/pack/nfpmdeb"
)

const program = "github.com/kibotos/kibo-rollout/internal/standin/cmd/standin"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("standin-debs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "", "directory for DIR/<version>/<package>.deb")
	arch := flags.String("arch", "amd64", "Debian architecture: amd64 or arm64")
	binary := flags.String("binary", "", "use this compiled stand-in instead of building one")
	var keys []string
	flags.Func("version", "version to pack, repeatable (default all: "+strings.Join(standin.Keys(), " ")+")", func(s string) error {
		if !slices.Contains(standin.Keys(), s) {
			return fmt.Errorf("cannot pack %s: no such version", s)
		}
		keys = append(keys, s)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" || flags.NArg() > 0 {
		return errors.New("usage: standin-debs -out DIR [-version V]... [-arch amd64] [-binary FILE]")
	}
	if len(keys) == 0 {
		keys = standin.Keys()
	}
	content, err := compiled(ctx, *binary, *arch, stderr)
	if err != nil {
		return err
	}
	for _, key := range keys {
		parts, _ := standin.Find(key)
		for _, r := range parts {
			file := filepath.Join(*out, key, pack.FileName(r, *arch))
			if err := write(file, r, *arch, content); err != nil {
				return err
			}
			_, _ = fmt.Fprintln(stdout, file)
		}
	}
	return nil
}

// compiled returns the bytes of the one static binary that all packages carry.
func compiled(ctx context.Context, binary, arch string, stderr io.Writer) ([]byte, error) {
	if binary != "" {
		return os.ReadFile(binary)
	}
	dir, err := os.MkdirTemp("", "standin-debs-")
	if err != nil {
		return nil, fmt.Errorf("cannot build the stand-in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "standin")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", file, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	cmd.Stderr = stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot build the stand-in: %w", err)
	}
	return os.ReadFile(file)
}

func write(file string, r standin.Release, arch string, binary []byte) error {
	work, err := os.MkdirTemp("", "standin-debs-")
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", file, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("cannot pack %s: %w", file, err)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", file, err)
	}
	err = nfpmdeb.Write(f, r, arch, binary, work)
	return errors.Join(err, f.Close())
}
