// Package pack makes the agent's Debian package: the program, the lines that hook it into apt and dpkg, and the
// scripts behind those lines. The hooks are configuration files, so removing the package leaves a closed gate
// that lets every other package through, and purging it takes the gate away.
package pack

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"

	"github.com/kibotos/kibo-rollout/agent"
	"github.com/kibotos/kibo-rollout/internal/release"
)

//go:embed files
var embedded embed.FS

// content is one file of the package.
type content struct {
	path   string
	source string // in files/; empty: the program
	mode   fs.FileMode
	config bool
}

func contents() []content {
	return []content{
		{"/usr/bin/kibo-agent", "", 0o755, false},
		{agent.AptHookPath, "apt-hook", 0o755, true},
		{agent.DpkgHookPath, "dpkg-hook", 0o755, true},
		// apt reads names without a dot, dpkg names of letters, digits, hyphens and underscores.
		{"/etc/apt/apt.conf.d/90kibo-agent", "90kibo-agent", 0o644, true},
		{"/etc/dpkg/dpkg.cfg.d/kibo-agent", "dpkg.cfg", 0o644, true},
		{"/etc/apt/preferences.d/kibo-agent", "preferences", 0o644, true},
		{"/usr/lib/systemd/system/kibo-agent.service", "kibo-agent.service", 0o644, false},
		{"/usr/lib/systemd/system/kibo-agent-fleetlock.service", "kibo-agent-fleetlock.service", 0o644, false},
		{"/usr/lib/tmpfiles.d/kibo-agent.conf", "tmpfiles.conf", 0o644, false},
	}
}

// Name is the file name of the package for a version (SemVer) and a Debian architecture.
func Name(version, arch string) (string, error) {
	v, err := release.ToDebian(version)
	if err != nil {
		return "", fmt.Errorf("cannot name the package: %w", err)
	}
	return "kibo-agent_" + v + "_" + arch + ".deb", nil
}

// Compile builds the static program for a Debian architecture at path. It needs the go command and must be
// called inside this module.
func Compile(path, version, arch string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version,
		"-o", path, "github.com/kibotos/kibo-rollout/cmd/kibo-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build kibo-agent: %w\n%s", err, out)
	}
	return nil
}

// Write packs the program at binary into a .debs written to w. The same input gives the same bytes.
func Write(w io.Writer, binary, version, arch string) (err error) {
	v, err := release.ToDebian(version)
	if err != nil {
		return fmt.Errorf("cannot pack kibo-agent: %w", err)
	}
	work, err := os.MkdirTemp("", "agent-deb-")
	if err != nil {
		return fmt.Errorf("cannot pack kibo-agent: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	info := &nfpm.Info{Name: "kibo-agent", Arch: arch, Platform: "linux", Version: v, VersionSchema: "none",
		Section: "admin", Priority: "optional", Maintainer: "kibo-rollout authors <kibo-rollout@kibotos.invalid>",
		Description: "gate and jobs of kibo-rollout on a host\n" +
			"Lets changes of kibotos packages through only while an allow-file permits them,\n" +
			"and runs single steps of an upgrade so that they outlive the connection.",
		MTime: time.Unix(0, 0).UTC(), DisableGlobbing: true}
	for _, c := range contents() {
		source, err := unpack(work, c.source)
		if err != nil {
			return err
		}
		if c.source == "" {
			source = binary
		}
		kind := files.TypeFile
		if c.config {
			kind = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: c.path, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: c.mode, MTime: info.MTime}})
	}
	// Ansible can place a window with nothing but copy: the directory is there from the start.
	info.Contents = append(info.Contents, &files.Content{Destination: "/var/lib/kibo-agent", Type: files.TypeDir,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: info.MTime}})
	for name, script := range map[string]*string{"postinst": &info.Scripts.PostInstall, "prerm": &info.Scripts.PreRemove, "postrm": &info.Scripts.PostRemove} {
		if *script, err = unpack(work, name); err != nil {
			return err
		}
	}
	if err := nfpm.PrepareForPackager(nfpm.WithDefaults(info), "deb"); err != nil {
		return fmt.Errorf("cannot pack kibo-agent: %w", err)
	}
	if err := deb.Default.Package(info, w); err != nil {
		return fmt.Errorf("cannot pack kibo-agent: %w", err)
	}
	return nil
}

// unpack puts one embedded file where nfpm can read it.
func unpack(dir, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := embedded.ReadFile("files/" + name)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", fmt.Errorf("cannot prepare %s: %w", name, err)
	}
	return path, nil
}
