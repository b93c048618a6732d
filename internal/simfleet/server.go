package simfleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
	"github.com/kibotos/kibo-rollout/internal/simfleet/shell"
)

// Stats count what a host's SSH server has served.
type Stats struct {
	Connections int64 // logins
	Execs       int64 // exec and shell requests
	SFTP        int64 // SFTP sessions
	Received    int64 // bytes of files
}

// server is the sshd of one machine.
type server struct {
	m      *host.Machine
	key    ssh.Signer
	config *ssh.ServerConfig
	ctx    context.Context // of the server's life
	stop   context.CancelFunc
	wait   sync.WaitGroup

	connections, execs, sftp, received atomic.Int64

	mu    sync.Mutex // guards what follows
	addr  string
	ln    net.Listener
	conns map[net.Conn]bool
	gone  bool
}

func newServer(m *host.Machine, key ssh.Signer, login ssh.PublicKey) *server {
	s := &server{m: m, key: key, conns: map[net.Conn]bool{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	want := login.Marshal()
	s.config = &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-OpenSSH_9.2-simulated",
		PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if c.User() != m.Login() || !bytes.Equal(k.Marshal(), want) {
				return nil, fmt.Errorf("user %s may not log in with this key", c.User())
			}
			return nil, nil // the library's way of saying yes
		},
	}
	s.config.AddHostKey(key)
	return s
}

// Addr is the host's address and port on loopback, "" before Start.
func (m *Machine) Addr() string {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	return m.server.addr
}

// HostKey is the host's public key.
func (m *Machine) HostKey() ssh.PublicKey { return m.server.key.PublicKey() }

// Stats returns what the host's SSH server has served until now.
func (m *Machine) Stats() Stats {
	s := m.server
	return Stats{s.connections.Load(), s.execs.Load(), s.sftp.Load(), s.received.Load()}
}

// DropConnections cuts every connection to the host; what runs there runs on.
func (m *Machine) DropConnections() { m.server.dropAll() }

func (s *server) start(ctx context.Context, lc *net.ListenConfig) error {
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.addr, s.ln = ln.Addr().String(), ln
	s.mu.Unlock()
	s.wait.Go(func() { s.accept(ln) })
	return s.sync()
}

// sync opens or closes the port as the machine's faults say.
func (s *server) sync() error {
	refuse := s.m.Faults().Refuse
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.addr == "" || s.gone:
	case refuse && s.ln != nil:
		err := s.ln.Close()
		s.ln = nil
		for c := range s.conns {
			err = errors.Join(err, ignoreClosed(c.Close()))
		}
		return err
	case !refuse && s.ln == nil:
		ln, err := net.Listen("tcp", s.addr)
		if err != nil {
			return fmt.Errorf("cannot open port of %s again: %w", s.m.Name(), err)
		}
		s.ln = ln
		s.wait.Go(func() { s.accept(ln) })
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *server) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.gone {
			s.mu.Unlock()
			_ = c.Close()
			return
		}
		s.conns[c] = true
		s.mu.Unlock()
		s.wait.Go(func() {
			defer s.forget(c)
			s.serve(c)
		})
	}
}

func (s *server) forget(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *server) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *server) close() error {
	s.mu.Lock()
	s.gone = true
	ln := s.ln
	s.ln = nil
	s.mu.Unlock()
	s.stop()
	var err error
	if ln != nil {
		err = ignoreClosed(ln.Close())
	}
	s.dropAll()
	s.wait.Wait()
	return err
}

func (s *server) serve(c net.Conn) {
	if s.m.Faults().Hang {
		<-s.ctx.Done()
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(c, s.config)
	if err != nil {
		return
	}
	s.connections.Add(1)
	go ssh.DiscardRequests(requests)
	var sessions sync.WaitGroup
	for n := range channels {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.UnknownChannelType, "only sessions here")
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			break
		}
		sessions.Go(func() { s.session(ch, reqs, func() { _ = c.Close() }) })
	}
	_ = conn.Close()
	sessions.Wait()
}

// session serves one channel: one exec, shell or subsystem, and signals to it.
func (s *server) session(ch ssh.Channel, reqs <-chan *ssh.Request, drop func()) {
	// Programs end with the machine, not with the connection: sshd without a terminal kills nothing either.
	ctx, cancel := context.WithCancel(host.WithDrop(s.ctx, drop))
	defer cancel()
	var running sync.WaitGroup
	started := false
	for req := range reqs {
		run := s.request(req, started)
		_ = req.Reply(run != nil || req.Type == "env" || req.Type == "signal", nil)
		switch {
		case req.Type == "signal":
			cancel()
		case run != nil:
			started = true
			running.Go(func() { run(ctx, ch) })
		}
	}
	running.Wait()
}

// request finds what a channel request starts, nil if nothing.
func (s *server) request(req *ssh.Request, started bool) func(ctx context.Context, ch ssh.Channel) {
	var arg struct{ Text string }
	if started || (req.Type != "shell" && ssh.Unmarshal(req.Payload, &arg) != nil) {
		return nil
	}
	switch {
	case req.Type == "exec", req.Type == "shell":
		line := arg.Text
		if req.Type == "shell" {
			line = "/bin/sh -s"
		}
		s.execs.Add(1)
		return func(ctx context.Context, ch ssh.Channel) { s.exec(ctx, ch, line) }
	case req.Type == "subsystem" && arg.Text == "sftp" && !s.m.Faults().NoSFTP:
		s.sftp.Add(1)
		return s.files
	}
	return nil
}

func (s *server) exec(ctx context.Context, ch ssh.Channel, line string) {
	defer func() { _ = ch.Close() }()
	p, err := s.m.Proc(s.m.Login())
	if err != nil {
		return
	}
	// A program that a signal ends does not come back from reading, so the channel is closed under it.
	stop := context.AfterFunc(ctx, func() {
		signal := struct {
			Name    string
			Core    bool
			Message string
			Lang    string
		}{Name: "TERM"}
		_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(&signal))
		_ = ch.Close()
	})
	p.Stdin, p.Stdout, p.Stderr = shell.NewInput(ch), ch, ch.Stderr()
	code := s.m.Shell(ctx, p, line)
	if stop() {
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(code & 0xff)}))
	}
}
