package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MarkerPath is where the strategy looks for it that was proposed for Zincati (Z9).
const MarkerPath = "/var/lib/zincati/admin/strategy/marker_file/allowfinalize.json"

// Marker is Zincati's proposed file. Zincati opens it as a user of its own and demands that others cannot write.
type Marker struct{ Path string }

// Place writes the file, with its end in Unix seconds.
func (m Marker) Place(allowUntil int64) error {
	if err := os.MkdirAll(filepath.Dir(m.Path), 0o755); err != nil {
		return fmt.Errorf("cannot make %s: %w", filepath.Dir(m.Path), err)
	}
	return writeDurable(m.Path, fmt.Appendf(nil, "{\"allowUntil\": %d}\n", allowUntil), 0o644)
}

// Remove takes the file away and says what was done. None is no error.
func (m Marker) Remove() (string, error) {
	err := os.Remove(m.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "there was no marker file", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot remove the marker file: %w", err)
	}
	return "closed", syncDir(filepath.Dir(m.Path))
}
