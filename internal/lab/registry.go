//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// registryDir has one file for each lab of this machine, so that labs do not take each other's addresses
// and can be taken down also when nobody remembers their directories.
const registryDir = "/run/kibo-lab"

// entry is one lab in the registry.
type entry struct {
	ID      string `json:"id"`
	Dir     string `json:"dir"`
	Network string `json:"network"` // first three numbers of its addresses
}

// labID names a lab by its directory, for control groups and machine names.
func labID(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])[:8]
}

// Dirs lists the directories of every lab that was made on this machine and not taken down.
func Dirs() ([]string, error) {
	entries, err := readEntries()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, one := range entries {
		dirs = append(dirs, one.Dir)
	}
	return dirs, nil
}

// readEntries reads the registry. Files that are not whole are passed over: their maker was killed while
// it wrote them, before it had made anything.
func readEntries() ([]entry, error) {
	files, err := filepath.Glob(filepath.Join(registryDir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("cannot list labs: %w", err)
	}
	var entries []entry
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list labs: %w", err)
		}
		var one entry
		if json.Unmarshal(data, &one) == nil && one.Dir != "" {
			entries = append(entries, one)
		}
	}
	return entries, nil
}

// claim registers the lab and gives it a network of its own: the one it had, or the first that is free.
func claim(ctx context.Context, dir string, count int) (entry, error) {
	lock, err := waitLock(ctx, filepath.Join(registryDir, "lock"))
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = lock.Close() }()
	entries, err := readEntries()
	if err != nil {
		return entry{}, err
	}
	taken := map[string]bool{}
	for _, one := range entries {
		if one.Dir == dir {
			return one, nil
		}
		taken[one.Network] = true
	}
	for third := 77; third < 100; third++ {
		network := "127.0." + strconv.Itoa(third)
		if taken[network] || !addressesFree(network, count) {
			continue
		}
		one := entry{ID: labID(dir), Dir: dir, Network: network}
		return one, register(one)
	}
	return entry{}, errors.New("cannot find a free network for the lab between 127.0.77 and 127.0.99")
}

// register writes the entry.
func register(one entry) error {
	data, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("cannot register the lab: %w", err)
	}
	if err := os.WriteFile(filepath.Join(registryDir, one.ID+".json"), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("cannot register the lab: %w", err)
	}
	return nil
}

// unregister takes the lab out of the registry.
func unregister(id string) error {
	err := os.Remove(filepath.Join(registryDir, id+".json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot unregister the lab: %w", err)
	}
	return nil
}

// address is the n-th address of a network, from 1.
func address(network string, n int) string { return network + "." + strconv.Itoa(n) }

// addressesFree reports whether the high port can be had on each address, as a sign that nobody uses it.
func addressesFree(network string, count int) bool {
	for n := 1; n <= count; n++ {
		if !canListen(address(network, n), highPort) {
			return false
		}
	}
	return true
}

// Ports of a host's sshd.
const (
	sshPort  = 22
	highPort = 22022 // where port 22 is taken on every address by an sshd of this machine
)

// choosePort returns port 22, or the high port and the reason why 22 is impossible here.
func choosePort(network string) (int, string) {
	if canListen(address(network, 1), sshPort) {
		return sshPort, ""
	}
	return highPort, "port 22 cannot be had on loopback addresses (an sshd of this machine that listens on every address?)"
}

// canListen reports whether a TCP port can be had.
func canListen(host string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// machineName is the name of a host's container on this machine.
func machineName(id, host string) string { return strings.Join([]string{"kibo", id, host}, "-") }
