package host

import (
	"bytes"
	"io"
)

// crlf writes line ends as a terminal does.
type crlf struct{ w io.Writer }

// Write writes b with a carriage return before every line feed.
func (c *crlf) Write(b []byte) (int, error) {
	if _, err := c.w.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}
