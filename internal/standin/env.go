package standin

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// ErrLocked is returned by TryLock when another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// Env is everything outside of the stand-in's logic. The real one (hostenv) is a Debian host;
// memenv is a host in memory, so that a simulated fleet runs the very same code.
// All paths are absolute paths on the host. One Env belongs to one running program.
type Env interface {
	Files
	Processes

	// Stdout and Stderr are the streams of the program.
	Stdout() io.Writer
	Stderr() io.Writer
	// User is the name of the user who runs the program, e.g. "root" or "kibotos-ctrl".
	User() string
	// Executable is the path of the running program; its release traits lie at
	// ../share/kibotos/<part>/release.json seen from the directory it is in.
	Executable() string
	// Now is the host's clock.
	Now() time.Time
	// Sleep waits. Only the slow-start switch waits.
	Sleep(d time.Duration)
	// Random returns n random bytes for keys and ids.
	Random(n int) ([]byte, error)
	// CallCtrl sends one request to the API of the ctrl that listens on addr ("ADDR:PORT").
	// An error means that no ctrl answered; a refusal is a Response with Error set.
	CallCtrl(addr string, req Request) (Response, error)
}

// Files is the file system of the host.
type Files interface {
	// ReadFile returns the content, or an error that is fs.ErrNotExist.
	ReadFile(path string) ([]byte, error)
	// WriteFile replaces the file in one step and makes missing parent directories.
	WriteFile(path string, data []byte, perm fs.FileMode) error
	// ReadDir returns the sorted names of the directory's entries; a missing directory has none.
	ReadDir(path string) ([]string, error)
	// Remove deletes one file; a missing one is no error.
	Remove(path string) error
	// TryLock takes an exclusive lock on the file without waiting, and makes the file if it is
	// missing. The lock ends with Close or with the process. ErrLocked if somebody else has it.
	TryLock(path string) (io.Closer, error)
	// ReadStore returns all pairs of the key-value database at path, as of one moment.
	// It may be called while another process serves from it, and changes nothing.
	// An error that is fs.ErrNotExist if there is no database.
	ReadStore(path string) (map[string]string, error)
	// UpdateStore lets change alter the pairs and stores the outcome in one transaction;
	// nothing is stored if change fails. It makes a missing database.
	UpdateStore(path string, change func(pairs map[string]string) error) error
}

// Processes is the service manager of the host. Nothing here can list units or stop them by
// pattern: what is to be stopped is named by a record (K41).
type Processes interface {
	// Unit tells the state of one unit; one that is not loaded is "inactive".
	Unit(name string) (Unit, error)
	// StartUnit starts a transient service that does not belong to the caller's own service,
	// so that it lives on when that is stopped.
	StartUnit(spec UnitSpec) (Unit, error)
	// StopUnit stops the one unit with exactly this name.
	StopUnit(name string) error
}

// Unit is the state of a systemd unit.
type Unit struct {
	Name      string `json:"name"`
	Active    string `json:"active"`    // active, inactive, failed, activating, …
	MainPID   int    `json:"mainPid"`   // 0 if there is none
	Processes int    `json:"processes"` // processes in the unit's control group
	Start     string `json:"start"`     // ExecMainStartTimestampMonotonic, microseconds since boot
}

// UnitSpec describes a transient service.
type UnitSpec struct {
	Name        string   // with ".service"
	Description string   // one line
	Argv        []string // absolute program and its arguments
}
