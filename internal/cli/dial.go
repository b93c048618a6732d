package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/charmbracelet/x/term"
	"github.com/google/shlex"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// pool makes the connections of one call: resolved as ssh resolves them, made when first asked for. What cannot be
// honoured for a selected host is refused here, before anything is connected to.
func (w World) pool(f *fleetFlags, hosts, selected []inventory.Host) (*remote.Pool, error) {
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
	r := newRoutes(resolver, f, hosts, args, password)
	if err := r.resolve(context.Background(), selected); err != nil {
		return nil, err
	}
	dialer := &sshconn.Dialer{
		Notice: func(text string) { _ = w.errScreen().Line("note: " + text) },
		Now:    w.Now,
	}
	if w.terminal() {
		dialer.Passphrase = func(file string) ([]byte, error) { return w.secret("Passphrase for " + file) }
	}
	return remote.NewPool(remote.PoolOptions{
		Forks: f.forks, Via: r.via,
		Dial: func(ctx context.Context, host string) (remote.Conn, error) {
			cfg, err := r.config(ctx, host)
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
		KeyFiles: h.Login.KeyFiles, ConnectTimeout: h.Login.Timeout, Retries: h.Login.Retries, BecomePassword: password,
	}
	if o.User == "" {
		o.User = f.user
	}
	if len(o.KeyFiles) == 0 && f.key != "" {
		o.KeyFiles = []string{f.key}
	}
	if h.Login.BecomePass != "" {
		o.BecomePassword = []byte(h.Login.BecomePass)
	}
	switch {
	case h.Problem != nil:
		return o, h.Problem
	case h.Login.Password != "":
		return o, errors.New("ansible_password: login by password is not supported; use a key or an agent")
	case h.Login.HostKeyCheck != nil && !*h.Login.HostKeyCheck:
		return o, errors.New("host keys are always verified: take ansible_host_key_checking: false out and put the host's key into known_hosts")
	case h.Login.Become != nil && !*h.Login.Become:
		return o, errors.New("ansible_become is false, but staging and installing need root")
	case bytes.ContainsAny(o.BecomePassword, "\n\r\x00"):
		return o, errors.New("the become password is more than one line: sudo would take each line for another try")
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
		password := bytes.TrimRight(data, "\r\n")
		if len(password) == 0 {
			return nil, fail(exitUsage, "", "cannot use the sudo password: %s is empty", f.passFile)
		}
		return password, nil
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
