package host

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	debian "pault.ag/go/debian/deb"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// maxDeb is the most that the unpacked members of a .deb may hold.
const maxDeb = 1 << 30

// debFile is one package file, unpacked.
type debFile struct {
	sum     string
	control map[string]string // fields
	scripts map[string]string // preinst, postinst, prerm, postrm
	conf    []string          // conffiles
	md5sums []byte
	files   []debEntry // in archive order
}

type debEntry struct {
	name   string // absolute
	mode   fs.FileMode
	data   []byte
	target string
}

// debCache keeps unpacked packages by checksum: a fleet installs the same few on every machine.
type debCache struct{ m sync.Map }

func (c *debCache) read(data []byte) (*debFile, error) {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	if d, ok := c.m.Load(sum); ok {
		return d.(*debFile), nil // only *debFile is stored
	}
	d, err := readDeb(data)
	if err != nil {
		return nil, err
	}
	d.sum = sum
	c.m.Store(sum, d)
	return d, nil
}

// readDeb reads a package file's bytes: the outer ar archive by hand, since a file that was cut off must be noticed.
func readDeb(data []byte) (*debFile, error) {
	const magic, header = "!<arch>\n", 60
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errors.New("not a Debian format archive")
	}
	d := &debFile{control: map[string]string{}, scripts: map[string]string{}}
	seen := ""
	for at := len(magic); at < len(data); {
		if at+header > len(data) {
			return nil, errors.New("unexpected end of file in archive member header")
		}
		h := data[at : at+header]
		name := strings.TrimSuffix(strings.TrimRight(string(h[:16]), " "), "/")
		size, err := strconv.Atoi(strings.TrimSpace(string(h[48:58])))
		if err != nil || size < 0 || string(h[58:]) != "`\n" {
			return nil, errors.New("corrupted member header")
		}
		at += header
		if size > len(data)-at {
			return nil, fmt.Errorf("unexpected end of file in archive member %s", name)
		}
		body := data[at : at+size]
		at += size + size%2
		switch {
		case strings.HasPrefix(name, "control.tar"):
			err = readTar(name, body, d.addControl)
			seen += "c"
		case strings.HasPrefix(name, "data.tar"):
			err = readTar(name, body, d.addFile)
			seen += "d"
		}
		if err != nil {
			return nil, fmt.Errorf("archive member %s: %w", name, err)
		}
	}
	if seen != "cd" {
		return nil, errors.New("has no control or data member")
	}
	return d, nil
}

func readTar(name string, body []byte, each func(h *tar.Header, data []byte) error) error {
	r := io.NopCloser(io.Reader(bytes.NewReader(body)))
	if ext := strings.TrimPrefix(path.Ext(name), "."); ext != "tar" {
		var err error
		open := debian.DecompressorFor("." + ext)
		if open == nil {
			return fmt.Errorf("unknown compression %s", ext)
		}
		if r, err = open(bytes.NewReader(body)); err != nil {
			return err
		}
	}
	defer func() { _ = r.Close() }()
	left := int64(maxDeb)
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if left -= h.Size; left < 0 {
			return errors.New("too large")
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if err := each(h, data); err != nil {
			return err
		}
	}
}

func (d *debFile) addControl(h *tar.Header, data []byte) error {
	switch name := path.Base(h.Name); name {
	case "control":
		for _, line := range lines(data) {
			if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
				d.control[key] = strings.TrimSpace(value)
			}
		}
	case "preinst", "postinst", "prerm", "postrm":
		d.scripts[name] = string(data)
	case "conffiles":
		d.conf = append(d.conf, lines(data)...)
	case "md5sums":
		d.md5sums = data
	}
	return nil
}

func (d *debFile) addFile(h *tar.Header, data []byte) error {
	e := debEntry{name: path.Clean("/" + h.Name), mode: fs.FileMode(h.Mode & 0o777), data: data, target: h.Linkname}
	switch h.Typeflag {
	case tar.TypeDir:
		e.mode |= fs.ModeDir
	case tar.TypeSymlink:
		e.mode |= fs.ModeSymlink
	case tar.TypeReg:
	default:
		return fmt.Errorf("cannot unpack %s: entry of type %c", h.Name, h.Typeflag)
	}
	if e.name != "/" {
		d.files = append(d.files, e)
	}
	return nil
}

// unpack writes the files below dir. skip leaves some out.
func (d *debFile) unpack(m *Machine, c memfs.Cred, dir string, skip func(debEntry) bool) error {
	for _, e := range d.files {
		if skip != nil && skip(e) {
			continue
		}
		at := path.Join(dir, e.name)
		var err error
		if parent := path.Dir(at); !m.fs.Exists(parent) {
			err = m.fs.MkdirAll(c, parent, 0o755)
		}
		switch {
		case err != nil:
		case e.mode.IsDir():
			if !m.fs.Exists(at) {
				err = m.fs.Mkdir(c, at, e.mode.Perm())
			}
		case e.mode&fs.ModeSymlink != 0:
			_ = m.fs.Remove(c, at)
			err = m.fs.Symlink(c, e.target, at)
		default:
			err = m.place(c, at, e.data, e.mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
