package sshconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/remote"
)

// A server that limits logins that are under way cuts connections at random: the attempt is repeated, with
// growing pauses and jitter, for at most dropLimit.
const (
	firstPause = 300 * time.Millisecond
	maxPause   = 8 * time.Second
	dropLimit  = 45 * time.Second
	// penaltyPause is for servers that say they penalise this address: every fast retry would add to it.
	penaltyPause = 15
)

// Dial connects to one host with a Dialer of its own.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	return (&Dialer{}).Dial(ctx, cfg)
}

// Dial connects and logs in. One time limit spans TCP, handshake and login of an attempt; only dropped handshakes
// are tried again. The error is a *remote.Error.
func (d *Dialer) Dial(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.RandomizationFactor = firstPause, maxPause, 0.5
	conn, err := backoff.Retry(ctx, func() (*Conn, error) {
		conn, err := d.attempt(ctx, cfg)
		var dropped *droppedError
		switch {
		case err == nil:
			return conn, nil
		case !errors.As(err, &dropped):
			return nil, backoff.Permanent(err)
		case dropped.penalty:
			return nil, fmt.Errorf("%w: %w", backoff.RetryAfter(penaltyPause), err)
		}
		return nil, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(dropLimit))
	if err == nil {
		return conn, nil
	}
	var known *remote.Error
	if errors.As(err, &known) {
		return nil, known
	}
	return nil, &remote.Error{Host: cfg.Host, Kind: remote.Unreachable, Err: err}
}

// droppedError is a connection that the server cut before login: it may well work a moment later.
type droppedError struct {
	err     error
	preface string // what the server said instead of its version
	penalty bool
}

func (e *droppedError) Error() string {
	text := "the server dropped the connection before login"
	if e.preface != "" {
		text += " (it said: " + e.preface + ")"
	}
	return text + ": " + e.err.Error()
}

func (e *droppedError) Unwrap() error { return e.err }

// attempt is one connection, with its jump hosts.
func (d *Dialer) attempt(ctx context.Context, cfg Config) (*Conn, error) {
	door := cfg
	if len(cfg.Jump) > 0 {
		door = cfg.Jump[0].withDefaults()
	}
	release, err := d.doors.at(address(door)).Take(ctx)
	if err != nil {
		return nil, &remote.Error{Host: cfg.Host, Kind: remote.Unreachable, Err: err}
	}
	defer release()
	return d.chain(ctx, cfg)
}

// chain connects hop by hop.
func (d *Dialer) chain(ctx context.Context, cfg Config) (*Conn, error) {
	var via *Conn
	for i, hop := range cfg.Jump {
		hop = hop.withDefaults()
		next, err := d.connect(ctx, hop, via)
		if err != nil {
			closeConn(via)
			return nil, viaError(err, cfg.Host, i, hop)
		}
		via = next
	}
	conn, err := d.connect(ctx, cfg, via)
	if err != nil {
		closeConn(via)
		return nil, err
	}
	return conn, nil
}

func closeConn(c *Conn) {
	if c != nil {
		_ = c.Close()
	}
}

// viaError names the jump host in the error of the host behind it.
func viaError(err error, host string, hop int, cfg Config) error {
	var known *remote.Error
	if !errors.As(err, &known) {
		return fmt.Errorf("jump host %s: %w", cfg.Host, err)
	}
	return &remote.Error{
		Host: host, Kind: known.Kind, Next: known.Next,
		Err: fmt.Errorf("jump host %d (%s): %w", hop+1, cfg.Host, known.Err),
	}
}

// connect opens one connection and logs in on it. It owns via only if it succeeds.
func (d *Dialer) connect(ctx context.Context, cfg Config, via *Conn) (*Conn, error) {
	fail := func(kind remote.Kind, err error, next string) error {
		return &remote.Error{Host: cfg.Host, Kind: kind, Err: err, Next: next}
	}
	check, err := newHostCheck(d, cfg)
	if err != nil {
		return nil, fail(remote.HostKey, err, "")
	}
	limit := newTimeLimit(ctx, cfg.ConnectTimeout)
	defer limit.stop()
	raw, err := d.open(limit.ctx, cfg, via)
	if err != nil {
		return nil, fail(remote.Unreachable, limit.explain(err), "")
	}
	ids := d.gather(cfg, limit.pause)
	defer ids.close()
	client, err := handshakeConfig(cfg, check, ids)
	if err != nil {
		_ = raw.Close()
		return nil, fail(remote.Unreachable, err, "")
	}
	preface := &prefaceConn{Conn: raw}
	stop := context.AfterFunc(limit.ctx, func() { _ = raw.Close() })
	conn, chans, reqs, err := ssh.NewClientConn(preface, address(cfg), client)
	if !stop() && err == nil {
		_ = conn.Close()
		err = limit.ctx.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, classify(cfg, limit, preface, ids, err)
	}
	return newConn(d, cfg, ssh.NewClient(conn, chans, reqs), via), nil
}

func classify(cfg Config, limit *timeLimit, preface *prefaceConn, ids *identities, err error) error {
	fail := func(kind remote.Kind, err error, next string) error {
		return &remote.Error{Host: cfg.Host, Kind: kind, Err: err, Next: next}
	}
	var key *hostKeyError
	var negotiation *ssh.AlgorithmNegotiationError
	switch {
	case errors.As(err, &key):
		return fail(remote.HostKey, key, key.next)
	case limit.ctx.Err() != nil:
		return fail(remote.Unreachable, limit.explain(err), "")
	case errors.As(err, &negotiation):
		return fail(remote.Unreachable, err, "")
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "oo many authentication failures"),
		strings.Contains(err.Error(), "cannot decrypt key"):
		return fail(remote.Auth, errors.New(ids.explain(cfg.User, err)),
			fmt.Sprintf("ssh -p %d %s@%s true", cfg.Port, cfg.User, cfg.Address))
	case preface.greeted() && !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset"):
		return fail(remote.Unreachable, err, "")
	}
	text := preface.text()
	return &droppedError{err: err, preface: text, penalty: strings.Contains(text, "Not allowed at this time")}
}

func address(cfg Config) string {
	return net.JoinHostPort(strings.TrimSuffix(cfg.Address, "."), strconv.Itoa(cfg.Port))
}

// open makes the byte stream: through a jump host, a command or TCP.
func (d *Dialer) open(ctx context.Context, cfg Config, via *Conn) (net.Conn, error) {
	switch {
	case via != nil:
		return via.client.DialContext(ctx, "tcp", address(cfg))
	case cfg.ProxyCommand != "":
		return startProxy(cfg.ProxyCommand)
	case d.Net != nil:
		return d.Net(ctx, cfg.Network, address(cfg))
	}
	return (&net.Dialer{}).DialContext(ctx, cfg.Network, address(cfg))
}

func handshakeConfig(cfg Config, check *hostCheck, ids *identities) (*ssh.ClientConfig, error) {
	c := &ssh.ClientConfig{
		User: cfg.User, HostKeyCallback: check.verify, ClientVersion: "SSH-2.0-kibo-rollout",
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return ids.signers, nil })},
	}
	var errs [4]error
	ours := ssh.SupportedAlgorithms()
	c.HostKeyAlgorithms, errs[0] = check.algorithms()
	c.Ciphers, errs[1] = allowed(ours.Ciphers, cfg.Ciphers, "ciphers")
	c.KeyExchanges, errs[2] = allowed(ours.KeyExchanges, cfg.KexAlgorithms, "key exchanges")
	c.MACs, errs[3] = allowed(ours.MACs, cfg.MACs, "MACs")
	return c, errors.Join(errs[:]...)
}
