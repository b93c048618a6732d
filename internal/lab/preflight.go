//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// tool is a program that the lab needs, with the Debian package that brings it.
type tool struct{ program, pkg string }

// tools lists what making a lab needs beside Go.
func tools() []tool {
	return []tool{{"systemd-nspawn", "systemd-container"}, {"mmdebstrap", "mmdebstrap"}, {"nsenter", "util-linux"},
		{"ssh", "openssh-client"}, {"dpkg-deb", "dpkg"}}
}

// needRoot refuses to work as anybody else.
func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("cannot make or remove a lab: it mounts file systems and boots containers, which only root may do")
	}
	return nil
}

// preflight names everything that is missing at once.
func preflight() error {
	if err := needRoot(); err != nil {
		return err
	}
	var programs, packages []string
	for _, one := range tools() {
		if _, err := exec.LookPath(one.program); err != nil {
			programs, packages = append(programs, one.program), append(packages, one.pkg)
		}
	}
	if len(programs) > 0 {
		return fmt.Errorf("cannot make a lab: missing %s (next: apt-get update && apt-get install %s)",
			strings.Join(programs, ", "), strings.Join(packages, " "))
	}
	return nil
}
