package host

import "sync"

// flock is one held lock on a file.
type flock struct {
	m    *Machine
	path string
	done chan struct{} // closed when it is let go
	once sync.Once
}

// tryLock takes the lock on a file if nobody has it.
func (m *Machine) tryLock(path string) (*flock, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if held := m.held[path]; held != nil {
		return held, false
	}
	l := &flock{m: m, path: path, done: make(chan struct{})}
	m.held[path] = l
	return l, true
}

// Close lets the lock go.
func (l *flock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.held, l.path)
		close(l.done)
	})
	return nil
}
