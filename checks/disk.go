package checks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// parseDisks reads df's table by the numbers at the end of each line, because a mount point may hold spaces. df fails for
// paths that are not there yet and still tells of the others.
func parseDisks(res command.Result) ([]Disk, error) {
	lines := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
	var out []Disk
	seen := map[string]bool{}
	for _, line := range lines[1:] { // after the heading
		d, ok := parseDisk(line)
		if !ok {
			return nil, fmt.Errorf("not a line of df: %q", printable(line))
		}
		if !seen[d.Path] {
			seen[d.Path] = true
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("df names no file system" + said(command.Result{Stderr: res.Stderr}))
	}
	return out, nil
}

// parseDisk reads "TARGET AVAIL INODES FREE". Without the number of inodes, or where it is 0, the file system does not
// count them.
func parseDisk(line string) (Disk, bool) {
	if !strings.HasPrefix(line, "/") || suspicious(line) {
		return Disk{}, false
	}
	var numbers []int64 // from the end
	target := strings.TrimRight(line, " ")
	for len(numbers) < 3 {
		i := strings.LastIndexByte(target, ' ')
		n, ok := count(target[i+1:])
		if i < 0 || !ok {
			break
		}
		numbers = append(numbers, n)
		target = strings.TrimRight(target[:i], " ")
	}
	switch len(numbers) {
	case 2:
		return Disk{Path: target, Free: numbers[1], Files: numbers[0]}, numbers[1] >= 0
	case 3:
		d := Disk{Path: target, Free: numbers[2], Files: numbers[0]}
		if numbers[1] <= 0 {
			d.Files = -1
		}
		return d, d.Free >= 0
	}
	return Disk{}, false
}

// count reads a number, or df's "-" as -1.
func count(s string) (int64, bool) {
	if s == "-" {
		return -1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}
