package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultLimit is how much of each output stream of a command is kept, in bytes.
const DefaultLimit = 1 << 20

// Bounds of what is kept besides the results.
const (
	maxNoise = 4 << 10 // text before the first frame, kept to explain failures
	maxFrame = 32      // a frame's text after the nonce
)

// ErrIncomplete says that the output ended before the script did: the outcome of the commands that
// have no Result is unknown.
var ErrIncomplete = errors.New("output ends before the script does")

// Collector takes the two output streams of a [Batch.Script] apart while they arrive. It keeps a bounded
// amount, whatever the host sends. Safe for concurrent use.
type Collector struct {
	mark    []byte // what a frame starts with
	total   int
	limit   int
	now     func() time.Time
	changed func()

	mu       sync.Mutex
	results  []Result
	begun    []time.Time
	out, err stream
	noise    []byte
	bad      error
}

// CollectorOptions are the outside world of a Collector. The zero value works.
type CollectorOptions struct {
	Limit   int              // bytes kept per stream and command; 0: DefaultLimit
	Now     func() time.Time // nil: Elapsed stays 0
	Changed func()           // called after each frame, without locks held
}

// stream is one of the two output streams. Counts are frames seen on it.
type stream struct {
	c            *Collector
	pending      []byte
	begun, ended int
	closed       bool // the final frame was seen
	field        func(*Result) *[]byte
}

// NewCollector returns a Collector for a script of total commands.
func NewCollector(total int, nonce string, o CollectorOptions) *Collector {
	c := &Collector{
		mark: []byte("\n" + nonce + " "), total: total, limit: o.Limit, now: o.Now, changed: o.Changed,
		results: make([]Result, 0, total),
	}
	if c.limit == 0 {
		c.limit = DefaultLimit
	}
	if c.now == nil {
		c.now = func() time.Time { return time.Time{} }
	}
	if c.changed == nil {
		c.changed = func() {}
	}
	c.out = stream{c: c, field: func(r *Result) *[]byte { return &r.Stdout }}
	c.err = stream{c: c, field: func(r *Result) *[]byte { return &r.Stderr }}
	return c
}

// Stdout takes the script's standard output.
func (c *Collector) Stdout() io.Writer { return &c.out }

// Stderr takes the script's standard error.
func (c *Collector) Stderr() io.Writer { return &c.err }

// Running is the index of the command that has begun last, or -1, and whether the script is complete.
func (c *Collector) Running() (index int, complete bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.begun - 1, c.out.closed && c.err.closed
}

// Noise is what came before the first frame of either stream: start-up files, banners, sudo.
func (c *Collector) Noise() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := string(c.noise)
	for _, s := range []*stream{&c.out, &c.err} {
		if s.begun == 0 {
			text += string(s.pending)
		}
	}
	return strings.TrimSpace(text)
}

// Results are the commands that ended, in order, and ErrIncomplete unless the script did too.
func (c *Collector) Results() ([]Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := min(c.out.ended, c.err.ended)
	results := append([]Result(nil), c.results[:done]...)
	switch {
	case c.bad != nil:
		return results, c.bad
	case !c.out.closed || !c.err.closed:
		return results, ErrIncomplete
	case c.out.ended != c.err.ended || c.out.begun != c.out.ended:
		return results, errors.New("cannot read output: the two streams disagree")
	}
	return results, nil
}

// Write implements io.Writer; it never fails.
func (s *stream) Write(p []byte) (int, error) {
	s.c.mu.Lock()
	framed := s.take(p)
	s.c.mu.Unlock()
	if framed {
		s.c.changed()
	}
	return len(p), nil
}

// take consumes what is certain and leaves the possible start of a frame pending.
func (s *stream) take(p []byte) (framed bool) {
	s.pending = append(s.pending, p...)
	for {
		at := bytes.Index(s.pending, s.c.mark)
		if at < 0 {
			keep := min(len(s.pending), len(s.c.mark)-1)
			s.content(s.pending[:len(s.pending)-keep])
			s.pending = append([]byte(nil), s.pending[len(s.pending)-keep:]...)
			return framed
		}
		s.content(s.pending[:at])
		s.pending = s.pending[at:]
		text := s.pending[len(s.c.mark):]
		end := bytes.IndexByte(text, '\n')
		switch {
		case end >= 0:
			if err := s.frame(string(text[:end])); err != nil && s.c.bad == nil {
				s.c.bad = err
			}
			framed = true
			s.pending = text[end+1:]
		case len(text) > maxFrame:
			s.content(s.pending[:1])
			s.pending = s.pending[1:]
		default:
			return framed
		}
	}
}

func (s *stream) content(p []byte) {
	switch {
	case s.begun == 0:
		s.c.noise = append(s.c.noise, p[:min(len(p), maxNoise-len(s.c.noise))]...)
	case s.begun > s.ended:
		r := &s.c.results[s.begun-1]
		field := s.field(r)
		room := min(len(p), s.c.limit-len(*field))
		*field = append(*field, p[:room]...)
		r.Truncated = r.Truncated || room < len(p)
	}
	// Text between two commands belongs to neither: a child that was left behind wrote it.
}

func (s *stream) frame(text string) error {
	kind, rest, _ := strings.Cut(text, " ")
	if s.closed {
		return fmt.Errorf("cannot read output: frame %q after the last one", text)
	}
	switch kind {
	case "b":
		if rest != strconv.Itoa(s.begun) || s.begun != s.ended || s.begun >= s.c.total {
			return fmt.Errorf("cannot read output: unexpected frame %q", text)
		}
		s.begin()
	case "e":
		index, status, _ := strings.Cut(rest, " ")
		exit, err := strconv.Atoi(status)
		if err != nil || exit < 0 || exit > 255 || index != strconv.Itoa(s.ended) || s.begun != s.ended+1 {
			return fmt.Errorf("cannot read output: unexpected frame %q", text)
		}
		s.end(exit)
	case "z":
		s.closed = true
	case "ready": // of BecomeLine
		if s.begun > 0 {
			return fmt.Errorf("cannot read output: unexpected frame %q", text)
		}
	default:
		return fmt.Errorf("cannot read output: unknown frame %q", text)
	}
	return nil
}

func (s *stream) begin() {
	s.begun++
	if s.begun > len(s.c.results) {
		s.c.results = append(s.c.results, Result{})
		s.c.begun = append(s.c.begun, s.c.now())
	}
}

func (s *stream) end(exit int) {
	r := &s.c.results[s.ended]
	r.Exit = exit
	r.Elapsed = s.c.now().Sub(s.c.begun[s.ended])
	s.ended++
}

// ParseBatch takes the whole output of a [Batch.Script] of total commands apart. The results are those of the
// commands that ended; the error is ErrIncomplete if the script did not.
func ParseBatch(nonce string, total int, stdout, stderr []byte) ([]Result, error) {
	c := NewCollector(total, nonce, CollectorOptions{})
	_, _ = c.out.Write(stdout)
	_, _ = c.err.Write(stderr)
	return c.Results()
}
