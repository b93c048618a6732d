package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxHops bounds chains of jump hosts, nested ones included.
const maxHops = 8

// Resolver turns Options into a Config, with what ssh_config says. Where there is an ssh binary, ssh -G is the truth.
type Resolver struct {
	SSH    string // path of the ssh binary; empty: none, the files are read by a library
	Home   string // ssh's home directory: the one in passwd, not $HOME, for every file
	User   string // the user on this machine
	Getenv func(string) string
	System string // system-wide file, read only without an ssh binary; empty: /etc/ssh/ssh_config

	mu   sync.Mutex
	hops map[string]Config
}

// SystemResolver is the Resolver for this machine and user. As ssh does, it goes by the home directory in passwd.
func SystemResolver() (*Resolver, error) {
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("cannot find out who runs this: %w", err)
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		ssh = ""
	}
	return &Resolver{SSH: ssh, Home: me.HomeDir, User: me.Username, Getenv: os.Getenv}, nil
}

// Resolve says how to reach a host. What cannot be honoured is an error that names it.
func (r *Resolver) Resolve(ctx context.Context, o Options) (Config, error) {
	cfg, err := r.resolve(ctx, o, maxHops)
	if err != nil {
		return Config{}, fmt.Errorf("cannot tell how to reach %s: %w", o.Host, err)
	}
	return cfg, nil
}

func (r *Resolver) resolve(ctx context.Context, o Options, depth int) (Config, error) {
	if depth == 0 {
		return Config{}, fmt.Errorf("more than %d jump hosts, or a circle of them", maxHops)
	}
	if o.Address == "" {
		o.Address = o.Host
	}
	if o.Address == "" || o.Address[0] == '-' {
		return Config{}, fmt.Errorf("bad address %q", o.Address)
	}
	w, err := parseWords(o.Args)
	if err != nil {
		return Config{}, err
	}
	w.set = append(o.own(), w.set...)
	ask := r.library
	if r.SSH != "" {
		ask = r.binary
	}
	s, err := ask(ctx, w, o.Address)
	if err != nil {
		return Config{}, err
	}
	cfg, err := r.config(o, s)
	if err != nil {
		return Config{}, err
	}
	if jump := s.one("proxyjump"); jump != "" && jump != "none" {
		cfg.ProxyCommand = ""
		cfg.Jump, err = r.jump(ctx, jump, w.config, depth-1)
	}
	return cfg, err
}

// own are the settings that the options themselves make; the first value of a setting wins.
func (o Options) own() []setting {
	var own []setting
	if o.Port != 0 {
		own = append(own, setting{"port", strconv.Itoa(o.Port)})
	}
	if o.User != "" {
		own = append(own, setting{"user", o.User})
	}
	if o.KeyFile != "" {
		own = append(own, setting{"identityfile", o.KeyFile})
	}
	if o.ConnectTimeout > 0 {
		own = append(own, setting{"connecttimeout", strconv.Itoa(max(1, int(o.ConnectTimeout/time.Second)))})
	}
	return own
}

// jump resolves a chain. Each hop has its own settings; only the first may have jump hosts of its own, since those
// of the others are overridden by the chain.
func (r *Resolver) jump(ctx context.Context, value, file string, depth int) ([]Config, error) {
	hops, err := parseJump(value)
	if err != nil {
		return nil, err
	}
	var chain []Config
	for i, h := range hops {
		o := Options{Host: h.address, User: h.user, Port: h.port}
		if file != "" {
			o.Args = []string{"-F", file}
		}
		cfg, err := r.hop(ctx, o, depth)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", h.address, err)
		}
		if i > 0 {
			cfg.Jump = nil
		}
		chain = append(append(chain, cfg.Jump...), cfg)
		chain[len(chain)-1].Jump = nil
	}
	if len(chain) > maxHops {
		return nil, fmt.Errorf("more than %d jump hosts", maxHops)
	}
	return chain, nil
}

// hop resolves a jump host once, however many hosts are behind it.
func (r *Resolver) hop(ctx context.Context, o Options, depth int) (Config, error) {
	key := fmt.Sprintf("%q", []any{o.Host, o.User, o.Port, o.Args})
	r.mu.Lock()
	known, ok := r.hops[key]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	cfg, err := r.resolve(ctx, o, depth)
	if err != nil {
		return Config{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hops == nil {
		r.hops = map[string]Config{}
	}
	r.hops[key] = cfg
	return cfg, nil
}

// settings are what ssh_config says about one host, keys in lower case.
type settings map[string][]string

func (s settings) one(key string) string {
	if v := s[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// binary asks ssh itself.
func (r *Resolver) binary(ctx context.Context, w words, address string) (settings, error) {
	argv := []string{"-G"}
	if w.config != "" {
		argv = append(argv, "-F", w.config)
	}
	for _, s := range w.set {
		argv = append(argv, "-o", s.key+"="+quoteSetting(s))
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, r.SSH, append(argv, "--", address)...) //nolint:gosec // argv, and ssh only prints
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("ssh -G: %w: %s", err, oneLine(stderr.String()))
	}
	return parseDump(stdout.String()), nil
}

// quoteSetting keeps spaces in the value of settings that are a list of words for ssh.
func quoteSetting(s setting) string {
	if s.key == "identityfile" && strings.ContainsAny(s.value, " \t") {
		return `"` + s.value + `"`
	}
	return s.value
}

// parseDump reads what ssh -G prints: a key and its value on each line.
func parseDump(text string) settings {
	s := settings{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if ok {
			key = strings.ToLower(key)
			s[key] = append(s[key], value)
		}
	}
	return s
}

// config makes a Config of what the options and ssh_config say.
func (r *Resolver) config(o Options, s settings) (Config, error) {
	cfg := Config{
		Host: o.Host, Address: s.one("hostname"), User: s.one("user"), HostKeyAlias: s.one("hostkeyalias"),
		CommandTimeout: o.CommandTimeout, BecomePassword: o.BecomePassword, IdentitiesOnly: s.one("identitiesonly") == "yes",
	}
	if cfg.Address == "" {
		cfg.Address = o.Address
	}
	if cfg.User == "" {
		cfg.User = r.User
	}
	if cfg.HostKeyAlias == "none" {
		cfg.HostKeyAlias = ""
	}
	port := s.one("port")
	if port == "" {
		port = strconv.Itoa(DefaultPort)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return cfg, fmt.Errorf("bad port %q", port)
	}
	cfg.Port = n
	t := tokens{r: r, cfg: cfg, name: o.Address}
	return cfg, errors.Join(
		refuse(s), hostKeyPolicy(&cfg, s), t.files(&cfg, s), t.proxy(&cfg, s), waits(&cfg, s, o), algorithms(&cfg, s),
	)
}

// files fills in keys, agent and known hosts.
func (t tokens) files(cfg *Config, s settings) error {
	var errs []error
	expand := func(words []string) []string {
		var files []string
		for _, w := range words {
			if w == "none" || w == "/dev/null" {
				continue
			}
			file, err := t.expand(w)
			errs = append(errs, err)
			files = append(files, t.r.path(file))
		}
		return files
	}
	cfg.KeyFiles = expand(s["identityfile"])
	cfg.CertificateFiles = expand(s["certificatefile"])
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		cfg.KnownHosts = append(cfg.KnownHosts, expand(strings.Fields(s.one(key)))...)
	}
	switch socket := s.one("identityagent"); socket {
	case "none":
	case "", "SSH_AUTH_SOCK", "$SSH_AUTH_SOCK":
		cfg.AgentSocket = t.r.Getenv("SSH_AUTH_SOCK")
	default:
		if strings.HasPrefix(socket, "$") {
			socket = t.r.Getenv(strings.Trim(socket, "${}"))
		}
		socket, err := t.expand(socket)
		errs = append(errs, err)
		cfg.AgentSocket = t.r.path(socket)
	}
	return errors.Join(errs...)
}

// path makes a file name of ssh_config absolute.
func (r *Resolver) path(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		return filepath.Join(r.Home, rest)
	}
	return file
}
