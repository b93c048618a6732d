// Package nfpmdeb packs the stand-in Kibotos into .debs for real hosts with nfpm.
package nfpmdeb

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
)

// Write packs one part. workDir is an empty directory for the files on their way into the package.
func Write(w io.Writer, r standin.Release, arch string, binary []byte, workDir string) error {
	info := &nfpm.Info{Name: r.Part.Package(), Arch: arch, Platform: "linux", Version: r.DebVersion(), VersionSchema: "none",
		Section: "admin", Priority: "optional", Maintainer: pack.Maintainer, Description: pack.Description(r.Part),
		MTime: pack.Epoch(), DisableGlobbing: true}
	info.Depends = pack.Depends(r.Part)
	info.Deb.Compression = "gzip:1" // many versions of one large binary: packing time counts more than size
	for i, f := range pack.Contents(r, binary) {
		if f.Link != "" {
			info.Contents = append(info.Contents, &files.Content{Source: f.Link, Destination: f.Path, Type: files.TypeSymlink,
				FileInfo: &files.ContentFileInfo{MTime: pack.Epoch()}})
			continue
		}
		source := filepath.Join(workDir, fmt.Sprintf("file-%d", i))
		if err := os.WriteFile(source, f.Content, f.Mode); err != nil {
			return fmt.Errorf("cannot prepare %s: %w", f.Path, err)
		}
		kind := files.TypeFile
		if f.Conffile {
			kind = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: f.Path, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.Mode, MTime: pack.Epoch()}})
	}
	for _, s := range pack.Scripts(r.Part) {
		source := filepath.Join(workDir, s.Name)
		if err := os.WriteFile(source, []byte(s.Text), 0o600); err != nil {
			return fmt.Errorf("cannot prepare %s: %w", s.Name, err)
		}
		switch s.Name {
		case "preinst":
			info.Scripts.PreInstall = source
		case "postinst":
			info.Scripts.PostInstall = source
		case "prerm":
			info.Scripts.PreRemove = source
		case "postrm":
			info.Scripts.PostRemove = source
		}
	}
	if err := nfpm.PrepareForPackager(nfpm.WithDefaults(info), "deb"); err != nil {
		return fmt.Errorf("cannot prepare %s: %w", r.Part.Package(), err)
	}
	if err := deb.Default.Package(info, w); err != nil {
		return fmt.Errorf("cannot pack %s: %w", r.Part.Package(), err)
	}
	return nil
}
