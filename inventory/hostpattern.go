package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	bracketedPort = regexp.MustCompile(`^\[([^\[\]]+)\]:([0-9]+)$`)
	trailingPort  = regexp.MustCompile(`^((?:[^:\[\]]|\[[^\]]*\])*):([0-9]+)$`)
	rangePart     = regexp.MustCompile(`^([^\[\]]*)\[([^\[\]]*)\](.*)$`)
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// mostHosts bounds what one key may expand to; a slip like [0:999999999] must not eat the machine.
const mostHosts = 100_000

// expandHostKey turns a host key (name, address, ranges, port) into host names and a port (0: none said).
func expandHostKey(key string) (names []string, port int, err error) {
	pattern := key
	for _, re := range []*regexp.Regexp{bracketedPort, trailingPort} {
		m := re.FindStringSubmatch(key)
		if m == nil {
			continue
		}
		pattern = m[1]
		if port, err = strconv.Atoi(m[2]); err != nil || port < 1 || port > 65535 || m[2][0] == '0' {
			return nil, 0, fmt.Errorf("%q is no port number", m[2])
		}
		break
	}
	if ip := strings.Trim(pattern, "[]"); ip != pattern && !strings.Contains(ip, "[") {
		if _, err := netip.ParseAddr(ip); err == nil {
			return nil, 0, fmt.Errorf("an address in brackets needs a port; without one write %q", ip)
		}
	}
	if strings.Contains(pattern, "[") {
		names, err = expandRange(pattern)
	} else {
		names = []string{pattern}
	}
	if err != nil {
		return nil, 0, err
	}
	for _, n := range names {
		if err := checkHostName(n); err != nil {
			return nil, 0, err
		}
	}
	return names, port, nil
}

// checkHostName refuses names that Ansible takes whole but that nobody can have meant.
func checkHostName(n string) error {
	switch {
	case n == "":
		return errors.New("empty host name")
	case strings.ContainsAny(n, "[]"):
		return fmt.Errorf("brackets in %q that make no range", n)
	case strings.ContainsAny(n, " \t/\\,!&~@*?;"), n[0] == '-':
		return fmt.Errorf("%q is no host name", n)
	case strings.Contains(n, ":"):
		if _, err := netip.ParseAddr(n); err != nil {
			return fmt.Errorf("%q is neither name:port nor an IPv6 address", n)
		}
	}
	return nil
}

// expandRange expands the first [begin:end:step] of a pattern and, for each value, the rest.
func expandRange(pattern string) ([]string, error) {
	m := rangePart.FindStringSubmatch(pattern)
	if m == nil {
		return nil, fmt.Errorf("brackets in %q that make no range", pattern)
	}
	values, err := rangeValues(m[2])
	if err != nil {
		return nil, err
	}
	tails := []string{m[3]}
	if strings.ContainsAny(m[3], "[]") {
		if tails, err = expandRange(m[3]); err != nil {
			return nil, err
		}
	}
	if len(values)*len(tails) > mostHosts {
		return nil, fmt.Errorf("%q expands to more than %d hosts", pattern, mostHosts)
	}
	out := make([]string, 0, len(values)*len(tails))
	for _, v := range values {
		for _, t := range tails {
			out = append(out, m[1]+v+t)
		}
	}
	return out, nil
}

// rangeValues lists the values of begin:end or begin:end:step, both ends included.
func rangeValues(text string) ([]string, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return nil, fmt.Errorf("a range is [begin:end] or [begin:end:step], not [%s]", text)
	}
	beg, end, step := parts[0], parts[1], 1
	if beg == "" {
		beg = "0"
	}
	if end == "" {
		return nil, fmt.Errorf("the range [%s] has no end", text)
	}
	if len(parts) == 3 {
		var err error
		if step, err = strconv.Atoi(parts[2]); err != nil || step < 1 {
			return nil, fmt.Errorf("the step in [%s] must be a number above 0", text)
		}
	}
	i, j := strings.Index(letters, beg), strings.Index(letters, end)
	if len(beg) == 1 && len(end) == 1 && i >= 0 && j >= 0 {
		if i > j {
			return nil, fmt.Errorf("the range [%s] begins after its end", text)
		}
		var out []string
		for ; i <= j; i += step {
			out = append(out, letters[i:i+1])
		}
		return out, nil
	}
	return numbers(text, beg, end, step)
}

func numbers(text, beg, end string, step int) ([]string, error) {
	width := 0
	if len(beg) > 1 && beg[0] == '0' {
		if width = len(beg); len(end) != width {
			return nil, fmt.Errorf("in [%s] both ends need the same number of digits", text)
		}
	}
	i, err1 := strconv.ParseUint(beg, 10, 32)
	j, err2 := strconv.ParseUint(end, 10, 32)
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("[%s] is no range of numbers or single letters", text)
	}
	if i > j {
		return nil, fmt.Errorf("the range [%s] begins after its end", text)
	}
	if (j-i)/uint64(step) >= mostHosts {
		return nil, fmt.Errorf("the range [%s] has more than %d values", text, mostHosts)
	}
	var out []string
	for ; i <= j; i += uint64(step) {
		out = append(out, fmt.Sprintf("%0*d", width, i))
	}
	return out, nil
}
