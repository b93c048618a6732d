package sshconn

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
)

// perDoor is how many logins may be under way at one address: sshd cuts connections at random from 10 on, and a jump
// host is one address for many hosts.
const perDoor = 8

// doors bound the logins under way at each address.
type doors struct {
	mu    sync.Mutex
	slots map[string]*remote.Slots
}

func (d *doors) at(address string) *remote.Slots {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.slots[address]
	if !ok {
		if d.slots == nil {
			d.slots = map[string]*remote.Slots{}
		}
		s = remote.NewSlots(perDoor)
		d.slots[address] = s
	}
	return s
}

// enter takes a place at every address that the login goes through. They are taken in one order by all, so that
// those who wait for each other's places cannot be in a circle.
func (d *doors) enter(ctx context.Context, cfg Config) (leave func(), err error) {
	var names []string
	for _, hop := range cfg.Jump {
		names = append(names, address(hop.withDefaults()))
	}
	if len(names) == 0 {
		names = append(names, address(cfg))
	}
	slices.Sort(names)
	var taken []func()
	leave = func() {
		for _, release := range taken {
			release()
		}
	}
	for _, name := range slices.Compact(names) {
		release, err := d.at(name).Take(ctx)
		if err != nil {
			leave()
			return nil, err
		}
		taken = append(taken, release)
	}
	return leave, nil
}

// timeLimit bounds one attempt. It stands still while a person is asked for a passphrase.
type timeLimit struct {
	ctx    context.Context
	cancel context.CancelFunc
	d      time.Duration
	timer  *time.Timer
	mu     sync.Mutex
	up     bool
}

func newTimeLimit(ctx context.Context, d time.Duration) *timeLimit {
	l := &timeLimit{d: d}
	l.ctx, l.cancel = context.WithCancel(ctx)
	l.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		l.up = true
		l.mu.Unlock()
		l.cancel()
	})
	return l
}

func (l *timeLimit) pause() (resume func()) {
	l.timer.Stop()
	return func() { l.timer.Reset(l.d) }
}

func (l *timeLimit) stop() {
	l.timer.Stop()
	l.cancel()
}

// explain replaces the error of an aborted operation by the reason for aborting it.
func (l *timeLimit) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up {
		return fmt.Errorf("no connection within %s (TCP, handshake and login)", l.d)
	}
	return err
}

// prefaceConn remembers how the server began to speak.
type prefaceConn struct {
	net.Conn
	mu   sync.Mutex
	said []byte
}

func (p *prefaceConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, b[:min(n, 256-len(p.said))]...)
	return n, err
}

// greeted tells if the server sent its SSH version.
func (p *prefaceConn) greeted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.HasPrefix(string(p.said), "SSH-") || strings.Contains(string(p.said), "\nSSH-")
}

// text is what the server said if that is not SSH.
func (p *prefaceConn) text() string {
	if p.greeted() {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line, _, _ := strings.Cut(string(p.said), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return ""
	}
	return oneLine(line)
}
