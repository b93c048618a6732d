package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// stores are the key-value databases of a machine. The pairs are kept here and not in the file, which only shows that
// there is a database, whose it is and how often it was written: with thousands of nodes every change would otherwise
// write all of it anew.
type stores struct {
	write sync.Mutex // one transaction at a time
	mu    sync.Mutex // guards what follows
	pairs map[string]map[string]string
	count int
}

// ReadStore returns a copy of the pairs of a database.
func (e *env) ReadStore(name string) (map[string]string, error) {
	if _, err := e.m.fs.ReadFile(e.p.Cred, name); err != nil {
		return nil, err
	}
	s := &e.m.stores
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := maps.Clone(s.pairs[name])
	if pairs == nil {
		pairs = map[string]string{}
	}
	return pairs, nil
}

// UpdateStore changes the pairs of a database in one transaction and makes it if it is missing.
func (e *env) UpdateStore(name string, change func(map[string]string) error) error {
	s := &e.m.stores
	s.write.Lock()
	defer s.write.Unlock()
	pairs, err := e.ReadStore(name)
	if errors.Is(err, fs.ErrNotExist) {
		pairs, err = map[string]string{}, nil
	}
	if err != nil {
		return err
	}
	if err := change(pairs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := e.WriteFile(name, fmt.Appendf(nil, "database of the stand-in, write %d\n", s.count+1), 0o600); err != nil {
		return err
	}
	if s.pairs == nil {
		s.pairs = map[string]map[string]string{}
	}
	s.pairs[name], s.count = pairs, s.count+1
	return nil
}

// Database returns a copy of the pairs of a database, as root sees them.
func (m *Machine) Database(name string) map[string]string {
	if _, err := m.fs.ReadFile(memfs.Cred{}, name); err != nil {
		return nil
	}
	m.stores.mu.Lock()
	defer m.stores.mu.Unlock()
	return maps.Clone(m.stores.pairs[name])
}
