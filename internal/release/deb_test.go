package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const md5sums = "d41d8cd98f00b204e9800998ecf8427e  usr/bin/kibotos-node\n" +
	"0cc175b9c0f1b6a831c399e269772661  usr/lib/kibotos/node/vmlinux\n" +
	"92eb5ffee6ae2fec3ad71c777531578f  usr/lib/kibotos/node/firmware.bin\n"

// tarOf packs files into an archive, names and contents alternating.
func tarOf(t testing.TB, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zst(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// ar packs members, names and contents alternating.
func ar(members ...string) []byte {
	var b bytes.Buffer
	b.WriteString(arMagic)
	for i := 0; i < len(members); i += 2 {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", members[i], 0, 0, 0, "100644", len(members[i+1]))
		b.WriteString(members[i+1])
		if len(members[i+1])%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func controlText(pkg, version, arch string) string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: lab <lab@example.net>\nInstalled-Size: 10\nDescription: lab\n", pkg, version, arch)
}

// debOf makes a package file as dpkg-deb would.
func debOf(t testing.TB, pkg, version, arch string) []byte {
	t.Helper()
	control := tarOf(t, "./control", controlText(pkg, version, arch), "./md5sums", md5sums)
	return ar("debian-binary", "2.0\n", "control.tar.gz", string(gz(t, control)), "data.tar.gz", string(gz(t, tarOf(t))))
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// proves K6
func TestReadDebTrustsControlData(t *testing.T) {
	p := write(t, t.TempDir(), "kibotos-ctrl_9.9.9_arm64.deb", debOf(t, "kibotos-node", "0.2.0~rc.1", "amd64"))
	d, err := ReadDebFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if d.Part != Node || d.Package != "kibotos-node" || d.Version != "0.2.0~rc.1" || d.Architecture != "amd64" {
		t.Errorf("got %+v", d)
	}
	if len(d.SHA256) != 64 || d.Size == 0 || d.Installed != 10<<10 || d.Compression != "gz" || d.File != "kibotos-ctrl_9.9.9_arm64.deb" {
		t.Errorf("got %+v", d)
	}
}

// proves K32
func TestRuntimeID(t *testing.T) {
	a, ok := RuntimeID([]byte(md5sums))
	if !ok {
		t.Fatal("no runtime found")
	}
	shuffled := strings.Split(strings.TrimSpace(md5sums), "\n")
	b, _ := RuntimeID([]byte(shuffled[2] + "\n" + shuffled[1] + "\r\n" + "ffffffffffffffffffffffffffffffff  usr/bin/kibotos-node\n"))
	if a != b {
		t.Error("the id depends on the order, or on files outside the runtime")
	}
	if c, _ := RuntimeID([]byte(strings.Replace(md5sums, "0cc1", "1cc1", 1))); a == c {
		t.Error("the id does not depend on contents")
	}
	if _, ok := RuntimeID([]byte(shuffled[0])); ok {
		t.Error("a runtime found where there is none")
	}
}

// proves K6
func TestReadDebRefuses(t *testing.T) {
	whole := debOf(t, "kibotos-node", "0.1.4", "amd64")
	control := string(gz(t, tarOf(t, "control", controlText("kibotos-node", "0.1.4", "amd64"))))
	data := string(gz(t, tarOf(t)))
	negative := bytes.Replace(whole, []byte("4         `\n"), []byte("-60       `\n"), 1)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "empty"},
		"text":          {[]byte("not a package at all\n"), "not a Debian package"},
		"cut in data":   {whole[:len(whole)-8], "truncated"},
		"cut in header": {whole[:len(arMagic)+30], "truncated"},
		"magic only":    {whole[:len(arMagic)], "members are missing"},
		"negative size": {negative, "damaged"},
		"no data":       {ar("debian-binary", "2.0\n", "control.tar.gz", control), "members are missing"},
		"wrong order":   {ar("debian-binary", "2.0\n", "data.tar.gz", data, "control.tar.gz", control), "instead of control and data"},
		"format 3":      {ar("debian-binary", "3.0\n", "control.tar.gz", control, "data.tar.gz", data), "format 2"},
		"no control":    {ar("debian-binary", "2.0\n", "control.tar.gz", string(gz(t, tarOf(t, "x", "y"))), "data.tar.gz", data), "no control data"},
		"control twice": {ar("debian-binary", "2.0\n", "control.tar.gz", string(gz(t, tarOf(t, "control", "a", "./control", "b"))), "data.tar.gz", data), "twice"},
		"not gzip":      {ar("debian-binary", "2.0\n", "control.tar.gz", "garbage!", "data.tar.gz", data), "control member is unreadable"},
		"no version": {ar("debian-binary", "2.0\n", "control.tar.gz",
			string(gz(t, tarOf(t, "control", "Package: kibotos-node\nArchitecture: amd64\n"))), "data.tar.gz", data), "unreadable"},
		"odd package":      {debOf(t, "kibotos-node;reboot", "0.1.4", "amd64"), "no valid package"},
		"odd architecture": {debOf(t, "kibotos-node", "0.1.4", "../x"), "architecture"},
	} {
		t.Run(name, func(t *testing.T) {
			p := write(t, t.TempDir(), "kibotos-node_0.1.4_amd64.deb", tc.data)
			_, err := ReadDebFile(p)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), p) {
				t.Errorf("got %v, want %q and the file's name", err, tc.want)
			}
		})
	}
}

func TestReadDebNotesZstd(t *testing.T) {
	control := zst(t, tarOf(t, "./control", controlText("kibotos-gw", "0.1.4", "all")))
	b := ar("debian-binary", "2.0\n", "control.tar.zst", string(control), "data.tar.zst", string(zst(t, tarOf(t))))
	d, err := ReadDeb(bytes.NewReader(b), int64(len(b)))
	if err != nil || d.Part != GW || d.Compression != "zst" {
		t.Errorf("got %+v, %v", d, err)
	}
}

func TestReadDebs(t *testing.T) {
	dir := t.TempDir()
	node := write(t, dir, "n.deb", debOf(t, "kibotos-node", "0.1.4", "amd64"))
	agent := write(t, dir, "a.deb", debOf(t, "kibo-agent", "1.0.0", "amd64"))
	write(t, dir, "README", []byte("no package"))
	debs, err := ReadDebs(dir)
	if err != nil || len(debs) != 1 || debs[0].Path != node {
		t.Errorf("directory: got %+v, %v", debs, err)
	}
	if _, err := ReadDebs(agent); err == nil || !strings.Contains(err.Error(), `"kibo-agent" is no part`) {
		t.Errorf("named file: got %v", err)
	}
	if d, err := ReadDebFile(agent); err != nil || d.Part != "" || d.Package != "kibo-agent" {
		t.Errorf("got %+v, %v", d, err)
	}
	write(t, dir, "cut.deb", nil)
	if _, err := ReadDebs(dir); err == nil || !strings.Contains(err.Error(), "cut.deb") {
		t.Errorf("broken file among others: got %v", err)
	}
	if _, err := ReadDebs(t.TempDir()); err == nil {
		t.Error("empty directory: no error")
	}
}

func FuzzReadDeb(f *testing.F) {
	f.Add(debOf(f, "kibotos-node", "0.1.4", "amd64"))
	f.Add(ar("debian-binary", "2.0\n", "control.tar", string(tarOf(f, "control", controlText("kibotos-gw", "0.2.0~rc.1", "all"))), "data.tar", ""))
	f.Add([]byte(arMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadDeb(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			if err := plausible(d); err != nil {
				t.Errorf("accepted %+v: %v", d, err)
			}
		}
	})
}
