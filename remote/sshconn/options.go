package sshconn

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options is what an operator says about a host, before ssh_config has its say. Where both speak, Options win.
type Options struct {
	Host    string // the name shown in messages
	Address string // what ssh would be called with; empty: Host
	Port    int    // 0: from ssh_config
	User    string // empty: from ssh_config
	// KeyFiles are tried first, in order; those of ssh_config come after them.
	KeyFiles []string
	// Args are words for the command line of ssh, as in ansible_ssh_common_args: -o KEY=VALUE, -i, -p, -l, -J, -F.
	Args []string

	ConnectTimeout time.Duration // 0: from ssh_config
	Retries        int           // further attempts when the host does not answer; ConnectionAttempts of ssh_config may say more
	CommandTimeout time.Duration
	BecomePassword []byte
}

// words are command line words taken apart.
type words struct {
	set    []setting // -o, -p, -l, -i, -J in order
	config string    // -F
}

// setting is one ssh_config setting; the key is in lower case.
type setting struct{ key, value string }

// flagsWithValue are the flags that are honoured, and the settings they stand for.
func settingOf(flag byte) string {
	switch flag {
	case 'p':
		return "port"
	case 'l':
		return "user"
	case 'i':
		return "identityfile"
	case 'J':
		return "proxyjump"
	}
	return ""
}

// parseWords takes ssh's command line words apart. What cannot be honoured is refused by name; what makes no difference
// to running commands is dropped.
func parseWords(args []string) (words, error) {
	var w words
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' {
			return w, fmt.Errorf("cannot use ssh argument %q: it is not an option", arg)
		}
		for at := 1; at < len(arg); at++ {
			flag := arg[at]
			switch {
			case flag == '4' || flag == '6':
				w.set = append(w.set, setting{"addressfamily", map[byte]string{'4': "inet", '6': "inet6"}[flag]})
				continue
			case strings.IndexByte("CqvTxak", flag) >= 0: // compression, verbosity, no tty, no forwarding
				continue
			case flag != 'o' && flag != 'F' && settingOf(flag) == "":
				return w, fmt.Errorf("cannot honour ssh argument -%c in %q", flag, arg)
			}
			value := arg[at+1:]
			if value == "" {
				if i++; i == len(args) {
					return w, fmt.Errorf("cannot use ssh argument -%c: its value is missing", flag)
				}
				value = args[i]
			}
			if err := w.take(flag, value); err != nil {
				return w, err
			}
			break
		}
	}
	return w, nil
}

func (w *words) take(flag byte, value string) error {
	switch flag {
	case 'F':
		w.config = value
	case 'o':
		s, err := parseSetting(value)
		if err != nil {
			return err
		}
		w.set = append(w.set, s)
	default:
		w.set = append(w.set, setting{settingOf(flag), value})
	}
	return nil
}

// parseSetting reads KEY=VALUE or KEY VALUE, with quotes around the value or without.
func parseSetting(text string) (setting, error) {
	text = strings.TrimSpace(text)
	at := strings.IndexAny(text, "= \t")
	if at <= 0 {
		return setting{}, fmt.Errorf("cannot use ssh option %q: it has no value", text)
	}
	value := strings.TrimSpace(text[at:])
	value = strings.TrimSpace(strings.TrimPrefix(value, "="))
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	if value == "" || strings.ContainsAny(text, "\n\r\x00") {
		return setting{}, fmt.Errorf("cannot use ssh option %q: it has no value", text)
	}
	return setting{strings.ToLower(text[:at]), value}, nil
}

// hop is one word of ProxyJump.
type hop struct {
	user, address string
	port          int
}

// parseJump reads [user@]host[:port] and ssh://[user@]host[:port], separated by commas.
func parseJump(value string) ([]hop, error) {
	var hops []hop
	for _, word := range strings.Split(value, ",") {
		rest := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(word), "ssh://"), "/")
		var h hop
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			h.user, rest = rest[:at], rest[at+1:]
		}
		h.address = rest
		port := ""
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, fmt.Errorf("cannot read jump host %q: no closing bracket", word)
			}
			h.address, port = rest[1:end], strings.TrimPrefix(rest[end+1:], ":")
		} else if strings.Count(rest, ":") == 1 {
			h.address, port, _ = strings.Cut(rest, ":")
		}
		if port != "" {
			n, err := strconv.Atoi(port)
			if err != nil || n < 1 || n > 65535 {
				return nil, fmt.Errorf("cannot read jump host %q: bad port", word)
			}
			h.port = n
		}
		if h.address == "" || h.address[0] == '-' {
			return nil, fmt.Errorf("cannot read jump host %q: no name", word)
		}
		hops = append(hops, h)
	}
	return hops, nil
}

// parseWait reads a time as in ssh_config: 90, 90s, 1m30s, 1h, 2d, 1w.
func parseWait(text string) (time.Duration, error) {
	var total time.Duration
	number, digits := 0, 0
	for _, r := range text {
		var unit time.Duration
		switch r {
		case 's', 'S':
			unit = time.Second
		case 'm', 'M':
			unit = time.Minute
		case 'h', 'H':
			unit = time.Hour
		case 'd', 'D':
			unit = 24 * time.Hour
		case 'w', 'W':
			unit = 7 * 24 * time.Hour
		default:
			if r < '0' || r > '9' || digits > 6 {
				return 0, fmt.Errorf("cannot read time %q", text)
			}
			number, digits = number*10+int(r-'0'), digits+1
			continue
		}
		if digits == 0 {
			return 0, fmt.Errorf("cannot read time %q", text)
		}
		total += time.Duration(number) * unit
		number, digits = 0, 0
	}
	return total + time.Duration(number)*time.Second, nil
}
