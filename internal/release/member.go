package release

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"pault.ag/go/debian/deb"
)

const (
	arMagic  = "!<arch>\n"
	arHeader = 60
)

// members are the two archives in a .deb.
type members struct{ control, data deb.ArEntry }

// readMembers walks the outer archive. The library's own walk trusts sizes (a negative one never ends) and does not see a
// file that was cut off in its data; dpkg demands the order checked here.
func readMembers(r io.ReaderAt, size int64) (members, error) {
	if size == 0 {
		return members{}, errors.New("the file is empty")
	}
	magic := make([]byte, len(arMagic))
	if _, err := r.ReadAt(magic, 0); (err != nil && !errors.Is(err, io.EOF)) || string(magic) != arMagic {
		return members{}, errors.New("not a Debian package")
	}
	var list []deb.ArEntry
	for at := int64(len(arMagic)); at < size; {
		e, err := readHeader(r, at, size)
		if err != nil {
			return members{}, err
		}
		list = append(list, e)
		at += arHeader + e.Size + e.Size%2
		if len(list) > 16 {
			return members{}, errors.New("not a Debian package: too many members")
		}
	}
	return pick(list)
}

// readHeader reads one member's header and checks that its data is all there.
func readHeader(r io.ReaderAt, at, size int64) (deb.ArEntry, error) {
	h := make([]byte, arHeader)
	if _, err := r.ReadAt(h, at); err != nil {
		return deb.ArEntry{}, fmt.Errorf("truncated: it ends inside a member's header at byte %d", size)
	}
	n, err := strconv.ParseUint(strings.TrimRight(string(h[48:58]), " "), 10, 40)
	if err != nil || string(h[58:60]) != "`\n" {
		return deb.ArEntry{}, fmt.Errorf("damaged: no member's header at byte %d", at)
	}
	e := deb.ArEntry{
		Name: strings.TrimSuffix(strings.TrimRight(string(h[:16]), " "), "/"),
		Size: int64(n),
	}
	if missing := at + arHeader + e.Size - size; missing > 0 {
		return deb.ArEntry{}, fmt.Errorf("truncated: %d bytes are missing", missing)
	}
	e.Data = io.NewSectionReader(r, at+arHeader, e.Size)
	return e, nil
}

// pick finds the members by dpkg's rules: the format's number, then control, then data; names that begin with "_" are passed over.
func pick(list []deb.ArEntry) (members, error) {
	var named []deb.ArEntry
	for _, e := range list {
		if !strings.HasPrefix(e.Name, "_") {
			named = append(named, e)
		}
	}
	if len(named) < 3 || named[0].Name != "debian-binary" {
		return members{}, errors.New("not a Debian package, or truncated: members are missing")
	}
	format := make([]byte, 4)
	if n, err := named[0].Data.ReadAt(format, 0); n < 2 || (err != nil && !errors.Is(err, io.EOF)) || string(format[:2]) != "2." {
		return members{}, errors.New("not a Debian package of format 2")
	}
	if !strings.HasPrefix(named[1].Name, "control.tar") || !strings.HasPrefix(named[2].Name, "data.tar") {
		return members{}, fmt.Errorf("not a Debian package: members %q and %q instead of control and data", named[1].Name, named[2].Name)
	}
	return members{control: named[1], data: named[2]}, nil
}
