package host

import (
	"context"
	"sync/atomic"
)

// Faults are things that go wrong on a machine until they are taken away. The zero value is a healthy machine.
type Faults struct {
	Refuse       bool                     // no TCP connection is taken
	Hang         bool                     // connections are taken and never answered
	DropBefore   func(argv []string) bool // the connection is cut instead of the command that matches
	DropDuring   func(argv []string) bool // the connection is cut while the command that matches runs on
	DropAfter    func(argv []string) bool // the connection is cut between the command's end and its exit status
	FailStart    map[string]bool          // units that fail to start
	DiskFull     bool                     // every write fails
	AptLocked    bool                     // another apt-get holds the lock
	NoSFTP       bool                     // the server has no SFTP subsystem
	JobsDieEarly bool                     // a job of kibo-agent leaves no exit status
}

// Faults returns what is wrong at the moment.
func (m *Machine) Faults() Faults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}

// SetFaults changes what is wrong.
func (m *Machine) SetFaults(change func(f *Faults)) {
	m.mu.Lock()
	f := m.faults
	change(&f)
	m.faults = f
	m.mu.Unlock()
	m.fs.SetFull(f.DiskFull)
}

// Once makes a predicate that matches the first time only.
func Once(match func(argv []string) bool) func(argv []string) bool {
	var done atomic.Bool
	return func(argv []string) bool { return match(argv) && done.CompareAndSwap(false, true) }
}

type dropKey struct{}

// WithDrop tells the programs below ctx how to cut the connection that they were started over.
func WithDrop(ctx context.Context, drop func()) context.Context {
	return context.WithValue(ctx, dropKey{}, drop)
}

// faulty runs a program with the faults of the connection that it was started over.
func (m *Machine) faulty(ctx context.Context, argv []string, run func() int) int {
	drop, ok := ctx.Value(dropKey{}).(func())
	if !ok {
		return run()
	}
	f := m.Faults()
	if f.DropBefore != nil && f.DropBefore(argv) {
		drop()
		return exitKilled
	}
	if f.DropDuring != nil && f.DropDuring(argv) {
		drop()
	}
	code := run()
	if f.DropAfter != nil && f.DropAfter(argv) {
		drop()
	}
	return code
}

// exitKilled is the status of a program that was hung up on.
const exitKilled = 129
