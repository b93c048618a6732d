package simfleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/blakesmith/ar"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
	"github.com/kibotos/kibo-rollout/internal/standin"
	"github.com/kibotos/kibo-rollout/internal/standin/pack"
)

// debStore makes each package file once.
type debStore struct {
	mu   sync.Mutex
	made map[string][]byte
}

func (s *debStore) once(key string, write func(b *bytes.Buffer) error) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, ok := s.made[key]; ok {
		return d, nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return nil, fmt.Errorf("cannot make package %s: %w", key, err)
	}
	if s.made == nil {
		s.made = map[string][]byte{}
	}
	s.made[key] = b.Bytes()
	return s.made[key], nil
}

// part makes the stand-in's package of a part; its programs are placeholders that only simulated machines run.
func (s *debStore) part(key string, p release.Part) ([]byte, error) {
	list, _ := standin.Find(key)
	for _, r := range list {
		if r.Part == p {
			return s.once(key+"/"+string(p), func(b *bytes.Buffer) error { return pack.WriteDeb(b, r, host.Arch, nil) })
		}
	}
	return nil, fmt.Errorf("cannot make package of %s: no release %q", p, key)
}

// agent makes a package of kibo-agent for simulated machines.
func (s *debStore) agent(version string) ([]byte, error) {
	return s.once("kibo-agent/"+version, func(b *bytes.Buffer) error { return writeAgentDeb(b, version) })
}

// WriteDebs writes the packages of every part of a release, named by its key in the stand-in's catalogue, and of
// kibo-agent into a directory. They are valid .debs whose programs run on simulated machines only.
func (f *Fleet) WriteDebs(dir, key string) error {
	list, ok := standin.Find(key)
	if !ok {
		return fmt.Errorf("cannot write packages: no release %q, there are %v", key, standin.Keys())
	}
	for _, r := range list {
		data, err := f.debs.part(key, r.Part)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, pack.FileName(r, host.Arch)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// WriteAgentDeb writes kibo-agent's package for simulated machines into a directory and returns its path.
func (f *Fleet) WriteAgentDeb(dir, version string) (string, error) {
	data, err := f.debs.agent(version)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "kibo-agent_"+version+"_"+host.Arch+".deb")
	return name, writeFile(name, data, 0o644)
}

func writeFile(name string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("cannot make directory: %w", err)
	}
	if err := os.WriteFile(name, data, mode); err != nil {
		return fmt.Errorf("cannot write file: %w", err)
	}
	return os.Chmod(name, mode)
}

func writeAgentDeb(b *bytes.Buffer, version string) error {
	control := fmt.Sprintf("Package: kibo-agent\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nSection: admin\nPriority: optional\n"+
		"Description: kibo-agent (stand-in)\n For simulated machines only.\n", version, host.Arch, pack.Maintainer)
	members := []struct {
		name  string
		files [][3]string // path, mode, content
	}{
		{"control.tar.gz", [][3]string{{"control", "644", control}}},
		{"data.tar.gz", [][3]string{
			{"usr/bin/kibo-agent", "755", string(pack.Placeholder("kibo-agent"))},
			{strings.TrimPrefix(host.AgentRelease, "/"), "644", version + "\n"},
			{"etc/apt/apt.conf.d/90kibo-agent", "644", "DPkg::Pre-Install-Pkgs { \"/usr/bin/kibo-agent apt-hook\"; };\n"},
			{"etc/dpkg/dpkg.cfg.d/kibo-agent", "644", "pre-invoke=/usr/bin/kibo-agent dpkg-hook\n"},
		}},
	}
	w := ar.NewWriter(b)
	if err := w.WriteGlobalHeader(); err != nil {
		return err
	}
	add := func(name string, data []byte) error {
		err := w.WriteHeader(&ar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: pack.Epoch()})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	if err := add("debian-binary", []byte("2.0\n")); err != nil {
		return err
	}
	for _, m := range members {
		data, err := tarball(m.files)
		if err == nil {
			err = add(m.name, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func tarball(files [][3]string) ([]byte, error) {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	made := map[string]bool{".": true}
	var dirs func(dir string) error
	dirs = func(dir string) error {
		if made[dir] {
			return nil
		}
		made[dir] = true
		if err := dirs(path.Dir(dir)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./" + dir + "/", Mode: 0o755, ModTime: pack.Epoch(), Format: tar.FormatGNU})
	}
	for _, f := range files {
		if err := dirs(path.Dir(f[0])); err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if f[1] == "755" {
			mode = 0o755
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "./" + f[0], Mode: mode, Size: int64(len(f[2])), ModTime: pack.Epoch(), Format: tar.FormatGNU}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(f[2])); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
