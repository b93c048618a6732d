// Package sshconn reaches hosts over SSH: it implements remote.Conn with golang.org/x/crypto/ssh. Host
// keys are always verified, one connection serves a host, and everything has a time limit.
package sshconn

import (
	"context"
	"net"
	"time"
)

// HostKeyPolicy is what happens with a host whose key is in no known_hosts file. There is no policy that
// accepts a changed or revoked key, and none that skips the check.
type HostKeyPolicy string

// Host key policies, by their names in ssh_config.
const (
	Strict    HostKeyPolicy = "yes"        // refuse; the zero value means the same
	AcceptNew HostKeyPolicy = "accept-new" // record it, and say so
)

// Defaults for what a Config leaves at zero.
const (
	DefaultPort           = 22
	DefaultConnectTimeout = 10 * time.Second
	DefaultCommandTimeout = 2 * time.Minute
	DefaultKeepalive      = 15 * time.Second
	DefaultKeepaliveCount = 4
	DefaultMaxSessions    = 8 // sshd allows 10 a connection
)

// Config says how to reach one host. Values only; what is shared between hosts is in Dialer.
type Config struct {
	Host    string // the name shown in messages
	Address string // name or IP address to connect to; empty: Host
	Port    int
	Network string // tcp, tcp4 or tcp6; empty: tcp
	User    string

	KeyFiles         []string // private keys, or public keys whose private half is in the agent; tried first, in order
	CertificateFiles []string // in addition to KEYFILE-cert.pub
	IdentitiesOnly   bool     // offer nothing but KeyFiles
	AgentSocket      string   // empty: no agent

	KnownHosts   []string // files; the first is the one that accept-new writes to
	HostKeyAlias string   // the name to look up instead of Address
	HostKeys     HostKeyPolicy
	MinRSABits   int // of host keys; 0: what x/crypto takes

	// Algorithms to allow; empty: those of x/crypto. Names it does not know are left out.
	HostKeyAlgorithms, Ciphers, KexAlgorithms, MACs []string

	ConnectTimeout time.Duration // one limit for TCP, handshake and login of one attempt
	Retries        int           // further attempts when nobody answers; a refused login is never repeated
	CommandTimeout time.Duration // for commands that bring none
	Keepalive      time.Duration // between keepalives
	KeepaliveCount int           // unanswered ones after which the connection is lost
	MaxSessions    int           // channels at a time

	Jump         []Config // hosts to go through, in order; each is verified like any other
	ProxyCommand string   // a command on this machine whose streams are the connection; tokens are expanded already

	BecomePassword []byte // for sudo; empty: sudo must not ask
}

// Dialer holds what hosts share: the outside world, keys asked for once, the files read once. The
// zero value works and asks nobody anything. Safe for concurrent use; not to be copied.
type Dialer struct {
	// Passphrase asks for the passphrase of an encrypted key file. nil: such keys are used only through an agent.
	Passphrase func(file string) ([]byte, error)
	// Notice is told what an operator should know: a new host key was recorded, a line was skipped. nil: nobody is.
	Notice func(text string)
	// Now is the clock. nil: time.Now.
	Now func() time.Time
	// Net opens TCP connections. nil: a net.Dialer.
	Net func(ctx context.Context, network, address string) (net.Conn, error)

	wait   func(time.Duration) <-chan time.Time // between attempts; nil: time.After
	keys   keyring
	hosts  knownFiles
	become becomeGuard
	doors  doors
}

func (d *Dialer) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

func (d *Dialer) after(pause time.Duration) <-chan time.Time {
	if d.wait == nil {
		return time.After(pause)
	}
	return d.wait(pause)
}

func (d *Dialer) notice(text string) {
	if d.Notice != nil {
		d.Notice(text)
	}
}

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	wait := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	if c.Address == "" {
		c.Address = c.Host
	}
	if c.Network == "" {
		c.Network = "tcp"
	}
	set(&c.Port, DefaultPort)
	set(&c.KeepaliveCount, DefaultKeepaliveCount)
	set(&c.MaxSessions, DefaultMaxSessions)
	wait(&c.ConnectTimeout, DefaultConnectTimeout)
	wait(&c.CommandTimeout, DefaultCommandTimeout)
	wait(&c.Keepalive, DefaultKeepalive)
	return c
}
