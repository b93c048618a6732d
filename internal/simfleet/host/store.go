package host

import (
	"encoding/json"
	"maps"
	"sync"
)

// storeCache keeps parsed databases, so that reading a large one again costs a copy and no parsing.
type storeCache struct {
	write sync.Mutex // one transaction at a time
	mu    sync.Mutex // guards last
	last  map[string]storeEntry
}

type storeEntry struct {
	data  []byte // the very slice that was parsed
	pairs map[string]string
}

func (s *storeCache) get(path string, data []byte) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.last[path]; ok && len(data) > 0 && len(e.data) == len(data) && &e.data[0] == &data[0] {
		return maps.Clone(e.pairs), nil
	}
	pairs := map[string]string{}
	if err := json.Unmarshal(data, &pairs); err != nil {
		return nil, err
	}
	s.put(path, data, pairs)
	return maps.Clone(pairs), nil
}

// put remembers what data holds; mu is held.
func (s *storeCache) put(path string, data []byte, pairs map[string]string) {
	if s.last == nil {
		s.last = map[string]storeEntry{}
	}
	s.last[path] = storeEntry{data, pairs}
}
