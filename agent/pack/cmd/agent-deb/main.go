// Command agent-deb builds kibo-agent and its Debian package.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kibotos/kibo-rollout/agent/pack"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) (err error) {
	set := flag.NewFlagSet("agent-deb", flag.ContinueOnError)
	out := set.String("out", ".", "directory for the package")
	version := set.String("version", "", "version, as SemVer")
	arch := set.String("arch", "amd64", "architecture, as Debian names it")
	binary := set.String("binary", "", "a program that is built already (default: build it)")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *version == "" {
		return errors.New("-version is missing")
	}
	name, err := pack.Name(*version, *arch)
	if err != nil {
		return err
	}
	if *binary == "" {
		work, err := os.MkdirTemp("", "agent-deb-")
		if err != nil {
			return fmt.Errorf("cannot build: %w", err)
		}
		defer func() { _ = os.RemoveAll(work) }()
		*binary = filepath.Join(work, "kibo-agent")
		if err := pack.Compile(*binary, *version, *arch); err != nil {
			return err
		}
	}
	path := filepath.Join(*out, name)
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := errors.Join(pack.Write(f, *binary, *version, *arch), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	_, err = fmt.Fprintln(stdout, path)
	return err
}
