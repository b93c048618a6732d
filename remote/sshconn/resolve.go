package sshconn

import (
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
	"unicode"

	"golang.org/x/sync/singleflight"

	"github.com/kibotos/kibo-rollout/remote"
)

// maxHops bounds chains of jump hosts, nested ones included; maxAttempts, what ConnectionAttempts may ask for.
const (
	maxHops     = 8
	maxAttempts = 10
)

// Resolver turns Options into a Config, with what ssh_config says. Where there is an ssh binary, ssh -G is the truth.
type Resolver struct {
	SSH    string // path of the ssh binary; empty: none, the files are read by a library
	Home   string // ssh's home directory: the one in passwd, not $HOME, for every file
	User   string // the user on this machine
	Getenv func(string) string
	System string // system-wide file, read only without an ssh binary; empty: /etc/ssh/ssh_config

	mu     sync.Mutex
	asked  map[string]settings
	flight singleflight.Group
	busy   *remote.Slots // ssh processes at a time
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

// ResolveError is a host that cannot be reached as it is configured, found before anything is connected to.
type ResolveError struct {
	Host string
	Err  error
}

func (e *ResolveError) Error() string {
	return "cannot tell how to reach " + e.Host + ": " + e.Err.Error()
}

func (e *ResolveError) Unwrap() error { return e.Err }

// Resolve says how to reach a host. What cannot be honoured is an error that names it.
func (r *Resolver) Resolve(ctx context.Context, o Options) (Config, error) {
	cfg, err := r.resolve(ctx, o, maxHops)
	if err != nil {
		return Config{}, &ResolveError{Host: o.Host, Err: err}
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
	s, err := r.settings(ctx, w, o.Address)
	if err != nil {
		return Config{}, err
	}
	cfg, err := r.config(o, s)
	if err != nil {
		return Config{}, err
	}
	if jump := s.one("proxyjump"); jump != "" && jump != "none" {
		cfg.ProxyCommand = ""
		cfg.Jump, err = r.jump(ctx, tokens{r: r, cfg: cfg, name: o.Address}.ofJump(jump), w.config, depth-1)
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
	for _, file := range o.KeyFiles {
		own = append(own, setting{"identityfile", file})
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
		cfg, err := r.resolve(ctx, o, depth)
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

// config makes a Config of what the options and ssh_config say.
func (r *Resolver) config(o Options, s settings) (Config, error) {
	cfg := Config{
		Host: o.Host, Address: s.one("hostname"), User: s.one("user"), HostKeyAlias: s.one("hostkeyalias"),
		CommandTimeout: o.CommandTimeout, BecomePassword: o.BecomePassword, Retries: o.Retries, IdentitiesOnly: s.one("identitiesonly") == "yes",
	}
	if cfg.Address == "" {
		cfg.Address = o.Address
	}
	if cfg.User == "" {
		cfg.User = r.User
	}
	if err := plain(cfg.Address, cfg.User); err != nil {
		return cfg, err
	}
	if n, err := strconv.Atoi(s.one("connectionattempts")); err == nil {
		cfg.Retries = max(cfg.Retries, min(n, maxAttempts)-1)
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
	cfg.KnownHosts = expand(strings.Fields(s.one("userknownhostsfile")))
	if len(cfg.KnownHosts) == 0 && cfg.HostKeys == AcceptNew {
		errs = append(errs, fmt.Errorf("accept-new with UserKnownHostsFile %s is refused: every host would be new every time", s.one("userknownhostsfile")))
	}
	cfg.KnownHosts = append(cfg.KnownHosts, expand(strings.Fields(s.one("globalknownhostsfile")))...)
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

// plain refuses what a shell would act on, as newer ssh does: addresses and users end up in proxy commands, and in
// lines to paste.
func plain(address, user string) error {
	odd := func(r rune) bool {
		return strings.ContainsRune("'`\"$\\;&<>|(){}", r) || unicode.IsSpace(r) || unicode.IsControl(r)
	}
	switch {
	case address == "" || address[0] == '-' || strings.ContainsFunc(address, odd):
		return fmt.Errorf("bad address %q", address)
	case user == "" || user[0] == '-' || strings.ContainsFunc(strings.ReplaceAll(strings.TrimSuffix(user, "$"), `\`, ""), odd):
		return fmt.Errorf("bad user name %q", user)
	}
	return nil
}

// path makes a file name of ssh_config absolute.
func (r *Resolver) path(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		return filepath.Join(r.Home, rest)
	}
	return file
}
