package host

import (
	"errors"
	"strings"
	"syscall"
)

func isErrno(err error, want syscall.Errno) bool {
	var n syscall.Errno
	return errors.As(err, &n) && n == want
}

// reason is the errno of err as the C library words it.
func reason(err error) string {
	var n syscall.Errno
	s := err.Error()
	if errors.As(err, &n) {
		s = n.Error()
	}
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
