package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/google/shlex"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// pool makes the connections of one call: resolved as ssh resolves them, made when first asked for.
func (w World) pool(f *fleetFlags, hosts []inventory.Host) (*remote.Pool, error) {
	resolver, err := sshconn.SystemResolver()
	if err != nil {
		return nil, err
	}
	password, err := w.becomePassword(f)
	if err != nil {
		return nil, err
	}
	args, err := shlex.Split(f.sshArgs)
	if err != nil {
		return nil, fail(exitUsage, "", "cannot use --ssh-common-args: %w", err)
	}
	byName := map[string]sshconn.Options{}
	for _, h := range hosts {
		o, err := options(f, h, args, password)
		if err != nil {
			return nil, fail(exitUsage, "", "%w", err)
		}
		byName[h.Name] = o
	}
	dialer := &sshconn.Dialer{
		Notice: func(text string) { _ = w.errScreen().Line("note: " + text) },
		Now:    w.Now,
	}
	if w.terminal() {
		dialer.Passphrase = func(file string) ([]byte, error) { return w.secret("Passphrase for " + file) }
	}
	return remote.NewPool(remote.PoolOptions{
		Forks: f.forks,
		Dial: func(ctx context.Context, host string) (remote.Conn, error) {
			o, ok := byName[host]
			if !ok {
				return nil, &remote.Error{Host: host, Kind: remote.Unreachable, Err: errors.New("no such host in the inventory")}
			}
			cfg, err := resolver.Resolve(ctx, o)
			if err != nil {
				return nil, &remote.Error{Host: host, Kind: remote.Unreachable, Err: err}
			}
			return dialer.Dial(ctx, cfg)
		},
	}), nil
}

// options are what the inventory and the flags say of one host. Flags are the defaults, as with Ansible: what the inventory
// says of a host wins.
func options(f *fleetFlags, h inventory.Host, args []string, password []byte) (sshconn.Options, error) {
	o := sshconn.Options{
		Host: h.Name, Address: h.Login.Address, Port: h.Login.Port, User: h.Login.User, Args: append(append([]string{}, args...), h.Login.CommonArgs...),
		ConnectTimeout: h.Login.Timeout, BecomePassword: password,
	}
	if o.User == "" {
		o.User = f.user
	}
	o.KeyFile = f.key
	if len(h.Login.KeyFiles) > 0 {
		o.KeyFile = h.Login.KeyFiles[0]
	}
	if h.Login.BecomePass != "" {
		o.BecomePassword = []byte(h.Login.BecomePass)
	}
	switch {
	case h.Login.Password != "":
		return o, fmt.Errorf("host %s: ansible_password: login by password is not supported; use a key or an agent", h.Name)
	case h.Login.HostKeyCheck != nil && !*h.Login.HostKeyCheck:
		return o, fmt.Errorf("host %s: host keys are always verified: take ansible_host_key_checking: false out and put the host's key into known_hosts", h.Name)
	case h.Login.Become != nil && !*h.Login.Become:
		return o, fmt.Errorf("host %s: ansible_become is false, but staging and installing need root", h.Name)
	}
	return o, nil
}

// becomePassword is the sudo password from a file or the terminal; never from an argument.
func (w World) becomePassword(f *fleetFlags) ([]byte, error) {
	switch {
	case f.passFile != "":
		data, err := os.ReadFile(f.passFile)
		if err != nil {
			return nil, fail(exitUsage, "", "cannot read the sudo password: %w", err)
		}
		return []byte(strings.TrimRight(string(data), "\r\n")), nil
	case f.askPass && !w.terminal():
		return nil, fail(exitUsage, "--become-password-file FILE", "cannot ask for the sudo password: no terminal")
	case f.askPass:
		return w.secret("sudo password")
	}
	return nil, nil
}

// secret asks on the terminal without showing what is typed.
func (w World) secret(what string) ([]byte, error) {
	in, ok := w.In.(*os.File)
	if !ok {
		return nil, errors.New("no terminal to ask on")
	}
	_, _ = fmt.Fprintf(w.Err, "%s: ", what)
	b, err := term.ReadPassword(in.Fd())
	_, _ = fmt.Fprintln(w.Err)
	if err != nil {
		return nil, fmt.Errorf("cannot read what was typed: %w", err)
	}
	return b, nil
}
