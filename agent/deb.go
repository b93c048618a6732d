package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// toolLimit bounds one call of dpkg-deb, dpkg-query or apt-config.
const toolLimit = 20 * time.Second

// tool runs one of the host's read-only programs with a fixed environment and returns its standard output.
func tool(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = Environment()
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w", strings.Join(argv, " "), err)
	}
	return string(out), nil
}

// ReadControl reads a .deb's control data with the host's own dpkg-deb: whatever compression the .deb uses,
// dpkg would read it in the same way. File names prove nothing (K6).
func ReadControl(path string) (Control, error) {
	out, err := tool("/usr/bin/dpkg-deb", "--show", "--showformat", "${Package}\n${Version}\n${Conflicts},${Breaks},${Replaces}\n", "--", path)
	if err != nil {
		return Control{}, fmt.Errorf("%s %w", path, errNotDeb)
	}
	lines := strings.Split(out, "\n")
	if len(lines) < 3 {
		return Control{}, fmt.Errorf("%s %w", path, errNotDeb)
	}
	return Control{Package: lines[0], Version: lines[1], Displaces: gatedIn(lines[2])}, nil
}

// gatedIn lists the gated packages that a list of relations names.
func gatedIn(relations string) []string {
	var names []string
	for _, relation := range strings.FieldsFunc(relations, func(r rune) bool { return r == ',' || r == '|' }) {
		relation = strings.TrimSpace(relation)
		if end := strings.IndexAny(relation, " (:"); end >= 0 {
			relation = relation[:end]
		}
		if name := strings.ToLower(relation); Gated(name) {
			names = append(names, name)
		}
	}
	return names
}

// Installed returns the packages that are on the host, or are marked to be removed, by dpkg's own list.
func Installed() ([]Package, error) {
	out, err := tool("/usr/bin/dpkg-query", "-W", "-f", "${Package}\t${Version}\t${db:Status-Want}\t${db:Status-Status}\n")
	if err != nil {
		return nil, err
	}
	var all []Package
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 4 {
			all = append(all, Package{Name: f[0], Version: f[1], Want: f[2], Status: f[3]})
		}
	}
	return all, nil
}

// Package is one line of dpkg's list.
type Package struct{ Name, Version, Want, Status string }

// FileSum returns the SHA-256 of a file in lower-case hex.
func FileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
