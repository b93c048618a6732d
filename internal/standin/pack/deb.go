package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // the format of md5sums in a .deb
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/blakesmith/ar"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// Epoch is the time of every file in a package, so that packing twice gives the same bytes.
func Epoch() time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) }

// WriteDeb writes the package of a part: a valid .deb with control, md5sums, conffiles, scripts and data. binary as
// in Contents. The same input gives the same bytes.
func WriteDeb(w io.Writer, r standin.Release, arch string, binary []byte) error {
	list := Contents(r, binary)
	data, err := tarball(withDirs(list))
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", r.Part.Package(), err)
	}
	control, err := tarball(controlFiles(r, arch, list))
	if err != nil {
		return fmt.Errorf("cannot pack %s: %w", r.Part.Package(), err)
	}
	archive := ar.NewWriter(w)
	if err := archive.WriteGlobalHeader(); err != nil {
		return fmt.Errorf("cannot write %s: %w", r.Part.Package(), err)
	}
	for _, m := range []struct {
		name    string
		content []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", control}, {"data.tar.gz", data}} {
		if err := archive.WriteHeader(&ar.Header{Name: m.name, Size: int64(len(m.content)), Mode: 0o644, ModTime: Epoch()}); err != nil {
			return fmt.Errorf("cannot write %s: %w", r.Part.Package(), err)
		}
		if _, err := archive.Write(m.content); err != nil {
			return fmt.Errorf("cannot write %s: %w", r.Part.Package(), err)
		}
	}
	return nil
}

func controlFiles(r standin.Release, arch string, list []File) []File {
	var sums, conffiles strings.Builder
	size := 0
	for _, f := range list {
		size += len(f.Content)
		if f.Conffile {
			conffiles.WriteString(f.Path + "\n")
			continue
		}
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.Content), strings.TrimPrefix(f.Path, "/")) //nolint:gosec // see import
	}
	depends := ""
	if d := Depends(r.Part); len(d) > 0 {
		depends = "Depends: " + strings.Join(d, ", ") + "\n"
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\n%sSection: admin\nPriority: optional\nDescription: %s\n",
		r.Part.Package(), r.DebVersion(), arch, Maintainer, (size+1023)/1024, depends, Description(r.Part))
	out := []File{
		{Path: "/control", Mode: 0o644, Content: []byte(control)},
		{Path: "/md5sums", Mode: 0o644, Content: []byte(sums.String())},
		{Path: "/conffiles", Mode: 0o644, Content: []byte(conffiles.String())},
	}
	for _, s := range Scripts(r.Part) {
		out = append(out, File{Path: "/" + s.Name, Mode: 0o755, Content: []byte(s.Text)})
	}
	return append([]File{{Path: "/", Mode: fs.ModeDir | 0o755}}, out...)
}

// withDirs puts every parent directory before its files: dpkg makes none by itself.
func withDirs(list []File) []File {
	seen := map[string]bool{}
	var out []File
	var add func(dir string)
	add = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		if dir != "/" {
			add(path.Dir(dir))
		}
		out = append(out, File{Path: dir, Mode: fs.ModeDir | 0o755})
	}
	for _, f := range list {
		add(path.Dir(f.Path))
		out = append(out, f)
	}
	return out
}

func tarball(list []File) ([]byte, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	w := tar.NewWriter(zip)
	for _, f := range list {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "." + f.Path, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Content)),
			ModTime: Epoch(), Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if f.Mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix("."+f.Path, "/")+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
