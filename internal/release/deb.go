package release

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pault.ag/go/debian/control"
	"pault.ag/go/debian/deb"
)

const (
	maxControl  = 32 << 20 // bytes of unpacked control members; the largest is md5sums
	runtimePath = "usr/lib/kibotos/node/"
)

// ReadDebs reads package files. A directory stands for the *.deb files directly in it, of which those of other packages
// are left out; a file that is named must be of a Kibotos part.
func ReadDebs(paths ...string) ([]Deb, error) {
	var out []Deb
	var errs []error
	for _, p := range paths {
		debs, err := readPath(p)
		if err != nil {
			errs = append(errs, err)
		}
		out = append(out, debs...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func readPath(p string) ([]Deb, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, fmt.Errorf("cannot read .deb: %w", err)
	}
	if !info.IsDir() {
		d, err := ReadDebFile(p)
		if err == nil && !d.Part.Valid() {
			err = fmt.Errorf("cannot use %s: package %q is no part of Kibotos", p, d.Package)
		}
		return []Deb{d}, err
	}
	entries, err := os.ReadDir(p) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("cannot read directory of .debs: %w", err)
	}
	var out []Deb
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".deb" {
			continue
		}
		d, err := ReadDebFile(filepath.Join(p, e.Name()))
		if err != nil {
			errs = append(errs, err)
		} else if d.Part.Valid() {
			out = append(out, d)
		}
	}
	if len(out) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("cannot find any .deb of a Kibotos part in %s", p)
	}
	return out, errors.Join(errs...)
}

// ReadDebFile reads one package file of whatever package. Part is empty if it is none of Kibotos. The error names the file.
func ReadDebFile(name string) (Deb, error) {
	f, err := os.Open(name)
	if err != nil {
		return Deb{}, fmt.Errorf("cannot read .deb: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Deb{}, fmt.Errorf("cannot read .deb: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Deb{}, fmt.Errorf("cannot read .deb %s: not a regular file", name)
	}
	d, err := ReadDeb(f, info.Size())
	if err != nil {
		return Deb{}, fmt.Errorf("cannot read .deb %s: %w", name, err)
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, io.NewSectionReader(f, 0, info.Size()+1)); err != nil || n != info.Size() {
		return Deb{}, fmt.Errorf("cannot read .deb %s: it changed while being read (%w)", name, errors.Join(err, io.ErrUnexpectedEOF))
	}
	d.SHA256 = hex.EncodeToString(sum.Sum(nil))
	d.Path, d.File = name, filepath.Base(name)
	return d, nil
}

// ReadDeb reads what a package file says of itself in its control data (K6). The file's checksum and names are not filled in.
func ReadDeb(r io.ReaderAt, size int64) (Deb, error) {
	members, err := readMembers(r, size)
	if err != nil {
		return Deb{}, err
	}
	files, err := controlFiles(members.control)
	if err != nil {
		return Deb{}, err
	}
	var c deb.Control
	if err := control.Unmarshal(&c, bytes.NewReader(files["control"])); err != nil {
		return Deb{}, fmt.Errorf("its control data is unreadable: %w", err)
	}
	d := Deb{
		Package:      c.Package,
		Version:      strings.TrimSpace(c.Values["Version"]),
		Architecture: strings.TrimSpace(c.Values["Architecture"]),
		Size:         size,
		Installed:    installed(c.InstalledSize),
		Compression:  compression(members.data.Name),
	}
	if err := plausible(d); err != nil {
		return Deb{}, err
	}
	for _, p := range Parts() {
		if p.Package() == d.Package {
			d.Part = p
		}
	}
	if d.Part == Node {
		d.Runtime, _ = RuntimeID(files["md5sums"])
	}
	return d, nil
}

// plausible refuses control data that could not be handed to other programs as it is.
func plausible(d Deb) error {
	const lower = "abcdefghijklmnopqrstuvwxyz0123456789"
	if d.Package == "" || strings.Trim(d.Package, lower+"+-.") != "" {
		return fmt.Errorf("its control data names no valid package: %q", d.Package)
	}
	if d.Architecture == "" || strings.Trim(d.Architecture, lower+"-") != "" {
		return fmt.Errorf("its control data names no valid architecture: %q", d.Architecture)
	}
	if _, err := CompareDebian(d.Version, d.Version); err != nil {
		return fmt.Errorf("its control data names no valid version: %w", err)
	}
	return nil
}

// controlFiles unpacks the control member's "control" and "md5sums".
func controlFiles(member deb.ArEntry) (map[string][]byte, error) {
	tr, closer, err := member.Tarfile()
	if err != nil {
		return nil, fmt.Errorf("its control member is unreadable: %w", err)
	}
	defer closer.Close()
	out := map[string][]byte{}
	for total := int64(0); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("its control member is unreadable: %w", err)
		}
		if total += h.Size + 512; total > maxControl {
			return nil, fmt.Errorf("its control member is larger than %d bytes", maxControl)
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || (name != "control" && name != "md5sums") {
			continue
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("its control member holds %q twice", name)
		}
		if out[name], err = io.ReadAll(tr); err != nil {
			return nil, fmt.Errorf("its control member is unreadable: %w", err)
		}
	}
	if out["control"] == nil {
		return nil, errors.New("it has no control data")
	}
	return out, nil
}

// installed turns Installed-Size, in KiB, into bytes; a size nobody can have is none.
func installed(kib int) int64 {
	if kib <= 0 || kib > 1<<40 {
		return 0
	}
	return int64(kib) << 10
}

func compression(member string) string {
	ext := strings.TrimPrefix(path.Ext(member), ".")
	if ext == "tar" {
		return "none"
	}
	return ext
}

// RuntimeID is the identity of a VM runtime: a hash over the lines of an md5sums file that are under
// usr/lib/kibotos/node/, whatever their order. False if there are none. The same for a package file's own
// md5sums and for /var/lib/dpkg/info/kibotos-node.md5sums of a host, so the two can be compared (K32).
func RuntimeID(md5sums []byte) (string, bool) {
	var lines []string
	for line := range strings.Lines(string(md5sums)) {
		sum, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		name = strings.TrimPrefix(strings.TrimLeft(name, " *"), "./")
		if ok && strings.HasPrefix(name, runtimePath) {
			lines = append(lines, sum+"  "+name+"\n")
		}
	}
	if len(lines) == 0 {
		return "", false
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:]), true
}
