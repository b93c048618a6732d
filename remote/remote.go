// Package remote runs one command on one host and places and reads files there. It knows classes of
// transport errors, and nothing of YAML, packages, checks or printing.
package remote

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// Conn is one live connection to one host. Safe for concurrent use.
type Conn interface {
	// Run runs one command. The error is an *Error: transport only, never a non-zero exit.
	Run(ctx context.Context, c command.Command) (command.Result, error)
	// RunBatch runs several commands in one exec.
	RunBatch(ctx context.Context, b command.Batch) ([]command.Result, error)
	// Upload writes a file as the login user: to a new temporary name in the same directory,
	// size and checksum verified on the host, then renamed. Never resumed by size.
	Upload(ctx context.Context, u Upload) error
	// Hold starts a command whose standard input stays open, for locks that live as long as the
	// connection. It returns once the command has printed its first line (given to the caller).
	Hold(ctx context.Context, c command.Command) (*Held, error)
	Close() error
}

// Upload is one file to be placed on a host.
type Upload struct {
	Source   io.ReaderAt
	Size     int64                  // bytes
	SHA256   string                 // hex; verified on the host after the write
	Path     string                 // absolute, or relative to the login user's home
	Mode     uint32                 // permission bits
	Progress func(sent, size int64) // may be nil
}

// Held is a running command that ends when released or when the connection is lost.
type Held struct {
	First   string          // its first line of output
	Lost    <-chan struct{} // closed when the command ended, for whatever reason
	Release func() error
}

// Kind is a class of transport error on which somebody acts.
type Kind string

// Kinds of transport errors.
const (
	Unreachable Kind = "unreachable"  // no TCP, no answer, handshake cut
	Auth        Kind = "auth"         // login refused
	HostKey     Kind = "host-key"     // unknown, changed or revoked host key
	Become      Kind = "become"       // sudo refused or needs a password
	Lost        Kind = "lost"         // connection lost while a command ran: its outcome is unknown
	TimedOut    Kind = "timed-out"    // the command's own time limit
	Refused     Kind = "refused"      // a decorator refused (read-only)
	BadTransfer Kind = "bad-transfer" // upload failed or its checksum differs
	Ended       Kind = "ended"        // a command to hold ended before its first line; wraps an *ExitError
)

// Error is a transport error on one host.
type Error struct {
	Host string
	Kind Kind
	Err  error
	Next string // something to paste, or empty
}

func (e *Error) Error() string {
	return "host " + e.Host + ": " + string(e.Kind) + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// ExitError is a command to hold that ended before it printed its first line, such as a lock that is taken.
type ExitError struct {
	Result command.Result
}

func (e *ExitError) Error() string {
	text := "exit " + strconv.Itoa(e.Result.Exit)
	if said := strings.TrimSpace(string(e.Result.Stderr)); said != "" {
		text += ": " + said
	}
	return text
}
