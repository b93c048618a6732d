package sshconn

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// tokens expands %h and its like, and ${VARIABLE}, in values of ssh_config.
type tokens struct {
	r    *Resolver
	cfg  Config
	name string // the host as it was asked for
}

func (t tokens) of(letter byte) (string, bool) {
	switch letter {
	case '%':
		return "%", true
	case 'h':
		return t.cfg.Address, true
	case 'n':
		return t.name, true
	case 'k':
		if t.cfg.HostKeyAlias != "" {
			return t.cfg.HostKeyAlias, true
		}
		return t.name, true
	case 'p':
		return strconv.Itoa(t.cfg.Port), true
	case 'r':
		return t.cfg.User, true
	case 'u':
		return t.r.User, true
	case 'd':
		return t.r.Home, true
	case 'i':
		return strconv.Itoa(os.Getuid()), true
	}
	return "", false
}

func (t tokens) expand(value string) (string, error) {
	var s strings.Builder
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '%' && i+1 < len(value):
			i++
			text, ok := t.of(value[i])
			if !ok {
				return "", fmt.Errorf("cannot expand %%%c in %q", value[i], value)
			}
			s.WriteString(text)
		case strings.HasPrefix(value[i:], "${"):
			name, _, ok := strings.Cut(value[i+2:], "}")
			text := t.r.Getenv(name)
			if !ok || text == "" {
				return "", fmt.Errorf("cannot expand %q: the variable is not set", value)
			}
			s.WriteString(text)
			i += len(name) + 2
		default:
			s.WriteByte(value[i])
		}
	}
	return s.String(), nil
}

// ofJump expands what may stand in ProxyJump. A % before anything else is part of an address: fe80::1%eth0.
func (t tokens) ofJump(value string) string {
	var pairs []string
	for _, letter := range "%hnpr" {
		text, _ := t.of(byte(letter))
		pairs = append(pairs, "%"+string(letter), text)
	}
	return strings.NewReplacer(pairs...).Replace(value)
}

func (t tokens) proxy(cfg *Config, s settings) error {
	line := s.one("proxycommand")
	if line == "" || line == "none" {
		return nil
	}
	var err error
	cfg.ProxyCommand, err = t.expand(line)
	return err
}

// refuse names settings that would change which host is reached, or how, and are not honoured here.
func refuse(s settings) error {
	var errs []error
	for _, key := range []string{
		"knownhostscommand", "revokedhostkeys", "bindaddress", "bindinterface", "remotecommand", "pkcs11provider", "proxyusefdpass",
		"refuseconnection",
	} {
		if v := s.one(key); v != "" && v != "none" && v != "no" {
			errs = append(errs, fmt.Errorf("cannot honour %s %s of ssh_config", key, v))
		}
	}
	return errors.Join(errs...)
}

// errUnverified says why unverified host keys are not an option.
var errUnverified = errors.New("StrictHostKeyChecking=no is refused: whoever answers at the address would be upgraded " +
	"in place of the host. Use accept-new to record new hosts, or ssh-keyscan once and compare the fingerprints")

func hostKeyPolicy(cfg *Config, s settings) error {
	if n, err := strconv.Atoi(s.one("requiredrsasize")); err == nil {
		cfg.MinRSABits = n
	}
	switch v := strings.ToLower(s.one("stricthostkeychecking")); v {
	case "", "yes", "true", "ask": // nobody can be asked here: the same as yes
		cfg.HostKeys = Strict
	case string(AcceptNew):
		cfg.HostKeys = AcceptNew
	case "no", "off", "false":
		return errUnverified
	default:
		return fmt.Errorf("cannot read StrictHostKeyChecking %s", v)
	}
	return nil
}

func waits(cfg *Config, s settings, o Options) error {
	var errs []error
	if v := s.one("connecttimeout"); v != "" && v != "none" && v != "0" {
		d, err := parseWait(v)
		cfg.ConnectTimeout = d
		errs = append(errs, err)
	}
	if o.ConnectTimeout > 0 {
		cfg.ConnectTimeout = o.ConnectTimeout
	}
	if v := s.one("serveraliveinterval"); v != "" && v != "none" && v != "0" {
		d, err := parseWait(v)
		cfg.Keepalive = d
		errs = append(errs, err)
		if n, err := strconv.Atoi(s.one("serveralivecountmax")); err == nil {
			cfg.KeepaliveCount = n
		}
	}
	switch v := s.one("addressfamily"); v {
	case "", "any":
	case "inet":
		cfg.Network = "tcp4"
	case "inet6":
		cfg.Network = "tcp6"
	default:
		errs = append(errs, fmt.Errorf("cannot read AddressFamily %s", v))
	}
	return errors.Join(errs...)
}

// algorithms takes over lists of algorithms. A list that changes the defaults (+, -, ^) is only seen without an ssh
// binary, which would have applied it.
func algorithms(cfg *Config, s settings) error {
	var errs []error
	for key, list := range map[string]*[]string{
		"hostkeyalgorithms": &cfg.HostKeyAlgorithms, "ciphers": &cfg.Ciphers, "kexalgorithms": &cfg.KexAlgorithms, "macs": &cfg.MACs,
	} {
		v := s.one(key)
		switch {
		case v == "":
		case strings.ContainsAny(v, "+^*?!") || v[0] == '-':
			errs = append(errs, fmt.Errorf("cannot honour %s %s without an ssh binary", key, v))
		default:
			*list = strings.Split(v, ",")
		}
	}
	return errors.Join(errs...)
}
