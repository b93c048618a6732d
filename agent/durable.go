package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// writeDurable puts data at path so that after a power cut there is either the old file or the whole new one:
// temporary file, fsync, rename, fsync of the directory.
func writeDurable(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	if err := renameio.WriteFile(path, data, mode, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode)); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return syncDir(dir)
}

// writeJSON writes v with writeDurable.
func writeJSON(path string, v any, mode os.FileMode) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", path, err)
	}
	return writeDurable(path, append(data, '\n'), mode)
}

// readJSON reads what writeJSON wrote.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}

// syncDir makes names in dir survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", dir, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("cannot sync %s: %w", dir, err)
	}
	return nil
}
