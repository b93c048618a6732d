package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"
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
	penaltyPause = 15 * time.Second
)

// Dial connects to one host with a Dialer of its own.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	return (&Dialer{}).Dial(ctx, cfg)
}

// Dial connects and logs in. One time limit spans TCP, handshake and login of an attempt. Handshakes that the server
// dropped are tried again, hosts that do not answer Config.Retries times; what was refused never is. The
// error is a *remote.Error.
func (d *Dialer) Dial(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	again := newRetry(cfg.Retries)
	for {
		conn, err := d.attempt(ctx, cfg)
		if err == nil {
			return conn, nil
		}
		var known *remote.Error
		if !errors.As(err, &known) {
			known = &remote.Error{Host: cfg.Host, Kind: remote.Unreachable, Err: err}
		}
		pause, ok := again.after(err)
		if !ok {
			return nil, known
		}
		select {
		case <-d.after(pause):
		case <-ctx.Done():
			known.Err = fmt.Errorf("%w: %w", known.Err, ctx.Err())
			return nil, known
		}
	}
}

// retry says whether an attempt is worth repeating, and when.
type retry struct {
	pauses *backoff.ExponentialBackOff
	spent  time.Duration // pauses for handshakes that were dropped
	left   int           // attempts at hosts that do not answer
}

func newRetry(retries int) *retry {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.RandomizationFactor = firstPause, maxPause, 0.5
	return &retry{pauses: pauses, left: retries}
}

func (r *retry) after(err error) (pause time.Duration, again bool) {
	var dropped *droppedError
	var known *remote.Error
	pause = r.pauses.NextBackOff()
	switch {
	case errors.As(err, &dropped):
		if dropped.penalty {
			pause = penaltyPause
		}
		r.spent += pause
		return pause, r.spent <= dropLimit
	case errors.As(err, &known) && known.Kind == remote.Unreachable && r.left > 0:
		r.left--
		return pause, true
	}
	return 0, false
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
	return text + ": " + oneLine(e.err.Error())
}

func (e *droppedError) Unwrap() error { return e.err }

// attempt is one connection, with its jump hosts.
func (d *Dialer) attempt(ctx context.Context, cfg Config) (*Conn, error) {
	leave, err := d.doors.enter(ctx, cfg)
	if err != nil {
		return nil, &remote.Error{Host: cfg.Host, Kind: remote.Unreachable, Err: err}
	}
	defer leave()
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
	ids := d.gather(limit.ctx, cfg, limit.pause) // before the host is asked: it lets us wait for a short time only
	defer ids.close()
	raw, err := d.open(limit.ctx, cfg, via)
	if err != nil {
		return nil, fail(remote.Unreachable, limit.explain(err), "")
	}
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
		if proxy, ok := raw.(*proxyConn); ok && proxy.said.String() != "" {
			err = fmt.Errorf("%w (the proxy command said: %s)", err, oneLine(proxy.said.String()))
		}
		return nil, classify(cfg, limit, preface, check, ids, err)
	}
	return newConn(d, cfg, ssh.NewClient(conn, chans, reqs), via), nil
}

// classify tells failures apart by how far the login got. What the server says is shown, never believed: only a
// connection that was cut before the host proved who it is may be tried again.
func classify(cfg Config, limit *timeLimit, preface *prefaceConn, check *hostCheck, ids *identities, err error) error {
	fail := func(kind remote.Kind, err error, next string) error {
		return &remote.Error{Host: cfg.Host, Kind: kind, Err: err, Next: next}
	}
	var key *hostKeyError
	text := oneLine(err.Error())
	cut := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case errors.As(err, &key):
		return fail(remote.HostKey, key, key.next)
	case limit.ctx.Err() != nil:
		return fail(remote.Unreachable, limit.explain(errors.New(text)), "")
	case check.accepted.Load():
		return fail(remote.Auth, errors.New(ids.explain(cfg.User, text, cut)), fmt.Sprintf("ssh -p %d %s true", cfg.Port,
			shellescape.Quote(cfg.User+"@"+cfg.Address)))
	case cut || !preface.greeted():
		said := preface.text()
		return &droppedError{err: err, preface: said, penalty: strings.Contains(said, "Not allowed at this time")}
	}
	return fail(remote.Unreachable, errors.New(text), "")
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
		User: cfg.User, HostKeyCallback: check.callback, ClientVersion: "SSH-2.0-kibo-rollout",
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
