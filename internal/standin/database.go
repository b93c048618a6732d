package standin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// DatabasePath is ctrl's database under its state directory.
func DatabasePath(stateDir string) string { return path.Join(stateDir, "kibotos.db") }

// Keys of the database. Every value is JSON or a number.
const (
	keySchema       = "meta/schema"
	keyDirty        = "meta/dirty"
	keyTemplateForm = "meta/template-form"
	prefixNode      = "node/"
	prefixWorkspace = "workspace/"
	prefixObject    = "unfinished/"
)

// nodeRecord is what ctrl keeps of a node over its own restarts.
type nodeRecord struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Drained  bool   `json:"drained"`
}

// workspace is one Workspace and the Launch that it is pinned to.
type workspace struct {
	Launch string `json:"launch"` // sha256 of the artifact, hex
}

// launch is the artifact that a Workspace starts from.
type launch struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
}

// schemaOf reads the migration state.
func schemaOf(pairs map[string]string) (version int, dirty bool, err error) {
	version, err = strconv.Atoi(pairs[keySchema])
	if err != nil {
		return 0, false, fmt.Errorf("cannot read schema version: %w", err)
	}
	return version, pairs[keyDirty] == "true", nil
}

func setSchema(pairs map[string]string, version int, dirty bool) {
	pairs[keySchema] = strconv.Itoa(version)
	pairs[keyDirty] = strconv.FormatBool(dirty)
	if !dirty {
		pairs[keyTemplateForm] = strconv.Itoa(version)
	}
}

// names returns the sorted rest of all keys with the prefix.
func names(pairs map[string]string, prefix string) []string {
	var found []string
	for key := range pairs {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// encode is for the plain structs of this package, which always marshal.
func encode(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func artifactPath(state, sum string) string { return path.Join(state, "artifacts", sum) }

// readLaunch reads the artifact again and verifies it, as the target version would.
func readLaunch(env Env, state, sum string, newest int) error {
	data, err := env.ReadFile(artifactPath(state, sum))
	if err != nil {
		return fmt.Errorf("cannot read Launch: %w", err)
	}
	if digest(data) != sum {
		return fmt.Errorf("cannot verify Launch %.12s: content does not match", sum)
	}
	var l launch
	if err := json.Unmarshal(data, &l); err != nil {
		return fmt.Errorf("cannot parse Launch %.12s: %w", sum, err)
	}
	if l.Format > newest {
		return fmt.Errorf("cannot use Launch %.12s: format %d is newer than %d", sum, l.Format, newest)
	}
	return nil
}
