package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	maxTail   = 64 << 10  // of a job's output in its JSON
	maxOutput = 512 << 10 // of each of the two files that hold a job's output
)

// output is a bounded log: when the file is full it becomes path.old, replacing the one before. Between one
// and two times maxOutput bytes are kept, the latest ones.
type output struct {
	path string
	file *os.File
	size int
}

func newOutput(path string) (*output, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write the job's output: %w", err)
	}
	return &output{path: path, file: f}, nil
}

// Write implements io.Writer. It never fails: a full disk must not stop an apt-get half-way.
func (o *output) Write(p []byte) (int, error) {
	if o.size >= maxOutput {
		o.turn()
	}
	n, _ := o.file.Write(p)
	o.size += n
	return len(p), nil
}

func (o *output) turn() {
	if err := os.Rename(o.path, o.path+".old"); err != nil {
		return
	}
	if f, err := os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil {
		_ = o.file.Close()
		o.file, o.size = f, 0
	}
}

func (o *output) close() error {
	return errors.Join(o.file.Sync(), o.file.Close())
}

// tail returns at most n bytes of the end of a bounded log, as valid UTF-8.
func tail(path string, n int64) (string, error) {
	last, err := tailOf(path, n)
	if err != nil {
		return "", err
	}
	if missing := n - int64(len(last)); missing > 0 {
		before, err := tailOf(path+".old", missing)
		if err != nil {
			return "", err
		}
		last = append(before, last...)
	}
	return strings.ToValidUTF8(string(last), "\uFFFD"), nil
}

func tailOf(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the job's output: %w", err)
	}
	defer func() { _ = f.Close() }()
	if size, err := f.Seek(0, io.SeekEnd); err == nil && size > n {
		_, err = f.Seek(-n, io.SeekEnd)
		if err != nil {
			return nil, fmt.Errorf("cannot read the job's output: %w", err)
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("cannot read the job's output: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, n))
	if err != nil {
		return nil, fmt.Errorf("cannot read the job's output: %w", err)
	}
	return data, nil
}
