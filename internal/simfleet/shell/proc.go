// Package shell is /bin/sh of a simulated host: real POSIX shell text, parsed and interpreted by
// mvdan.cc/sh, with the host's own programs and file system behind it. Nothing of the machine that it
// runs on can be reached through it.
package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// Proc is one program call on a host: what a process has when it starts.
type Proc struct {
	Args   []string
	Env    []string // NAME=value
	Dir    string   // working directory
	User   string
	Cred   memfs.Cred
	Stdin  io.Reader // never nil
	Stdout io.Writer
	Stderr io.Writer
}

// Host is what a shell needs of the machine that it runs on.
type Host interface {
	// FS is the host's disk.
	FS() *memfs.FS
	// Exec runs a program and returns its exit status.
	Exec(ctx context.Context, p *Proc) int
	// Lookup finds a program by its name, as `command -v` prints it.
	Lookup(name string) (string, bool)
}

// Path makes name absolute, from the working directory of p.
func (p *Proc) Path(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join("/", p.Dir, name)
}

// Getenv returns a variable of the environment, "" if it is not set.
func (p *Proc) Getenv(name string) string {
	for _, kv := range p.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// With returns a copy of p that runs other words.
func (p *Proc) With(args ...string) *Proc {
	q := *p
	q.Args = args
	return &q
}

// Printf writes to standard output.
func (p *Proc) Printf(format string, a ...any) { _, _ = fmt.Fprintf(p.Stdout, format, a...) }

// Fail writes "program: text" to standard error and returns code.
func (p *Proc) Fail(code int, format string, a ...any) int {
	_, _ = fmt.Fprintf(p.Stderr, path.Base(p.Args[0])+": "+format+"\n", a...)
	return code
}

// Input is a standard input that several programs read one after the other without taking what belongs to
// the next, as a shared file descriptor is.
type Input struct{ r *bufio.Reader }

// NewInput makes an Input of r.
func NewInput(r io.Reader) *Input { return &Input{bufio.NewReader(r)} }

// Read reads, as io.Reader.
func (in *Input) Read(b []byte) (int, error) { return in.r.Read(b) }

// lineReader gives the parser at most one line at a time, so that what follows is left to the commands.
type lineReader struct {
	r     io.Reader
	left  []byte
	ended bool // the shell has exited: nothing more is read
}

// ReadLine reads up to and with the next newline from any reader, without reading further.
func ReadLine(r io.Reader) (string, error) {
	if in, ok := r.(*Input); ok {
		return in.r.ReadString('\n')
	}
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		if n > 0 {
			line = append(line, b[0])
			if b[0] == '\n' {
				return string(line), nil
			}
		}
		if err != nil {
			return string(line), err
		}
	}
}

func (l *lineReader) Read(p []byte) (int, error) {
	if l.ended {
		return 0, io.EOF
	}
	if len(l.left) == 0 {
		line, err := ReadLine(l.r)
		if line == "" && err != nil {
			return 0, err
		}
		if err != nil {
			line += "\n" // the parser hands out a statement at the end of its line
		}
		l.left = []byte(line)
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}
