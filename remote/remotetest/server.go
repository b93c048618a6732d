package remotetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// ServerOptions say how a Server behaves. The zero value is a host with one ed25519 key that lets every
// key in and runs everything.
type ServerOptions struct {
	HostKeys     []ssh.Signer               // default: a new ed25519 key
	Users        map[string][]ssh.PublicKey // who may log in; nil: everybody with any key
	MaxAuthTries int
	MaxSessions  int    // channels a connection; 0: no limit
	NoSFTP       bool   // no file transfer subsystem
	Noise        string // what start-up files print, on stdout, in every session
	LoginOutput  string // if not empty the login shell prints this and exits with 1
	Path         string // directories put before PATH, for a sudo of one's own
	Home         string // working directory; default: a new one

	Silent     bool   // accept connections and never say a word
	Drop       int    // cut this many connections before saying anything
	Preface    string // say this before cutting
	Mute       bool   // never answer global requests: keepalives get lost
	NoForwards bool   // refuse to be a jump host
	CutLogin   bool   // cut the connection when somebody wants to log in
	ExpectUser string // if set, another user is refused whatever the key
}

// Server is a real SSH server in this process: it runs commands with /bin/sh, and serves files.
type Server struct {
	Address  string // 127.0.0.1
	Port     int
	Home     string
	HostKeys []ssh.Signer

	t        testing.TB
	o        ServerOptions
	listener net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	stats Stats
	wait  sync.WaitGroup
}

// Stats are what the server has seen.
type Stats struct {
	Connections int      // accepted TCP connections
	Logins      int      // those that logged in
	Execs       []string // command lines, in order
	Subsystems  []string
	Forwards    []string // addresses, as a jump host
	KeysOffered int
	Pending     int // connections that have not logged in yet
	MostPending int
}

// NewKey is a new ed25519 key pair.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// NewServer starts a server on a loopback port; it ends with the test.
func NewServer(t testing.TB, o ServerOptions) *Server {
	t.Helper()
	if len(o.HostKeys) == 0 {
		o.HostKeys = []ssh.Signer{NewKey(t)}
	}
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // answers at once
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().(*net.TCPAddr) //nolint:errcheck,forcetypeassert // it is a TCP listener
	s := &Server{
		Address: "127.0.0.1", Port: at.Port, Home: o.Home, HostKeys: o.HostKeys,
		t: t, o: o, listener: listener, conns: map[net.Conn]bool{},
	}
	s.wait.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		s.DropAll()
		s.wait.Wait()
	})
	return s
}

// KnownHosts writes a known_hosts file with all keys of the server, and returns its name.
func (s *Server) KnownHosts() string {
	s.t.Helper()
	var lines strings.Builder
	for _, k := range s.HostKeys {
		lines.WriteString("[" + s.Address + "]:" + itoa(s.Port) + " " + string(ssh.MarshalAuthorizedKey(k.PublicKey())))
	}
	file := filepath.Join(s.t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// Stats are what the server has seen so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.stats
	seen.Execs = append([]string(nil), seen.Execs...)
	seen.Forwards = append([]string(nil), seen.Forwards...)
	seen.Subsystems = append([]string(nil), seen.Subsystems...)
	return seen
}

// DropAll cuts every connection, as a host that dies does.
func (s *Server) DropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *Server) note(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.stats)
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.stats.Connections++
		drop := s.stats.Connections <= s.o.Drop
		s.mu.Unlock()
		s.wait.Go(func() {
			defer func() {
				_ = c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			switch {
			case drop:
				_, _ = c.Write([]byte(s.o.Preface))
			case s.o.Silent:
				_, _ = c.Read(make([]byte, 1<<10))
				_, _ = c.Read(make([]byte, 1<<10))
			default:
				s.serve(c)
			}
		})
	}
}

func (s *Server) config() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		MaxAuthTries: s.o.MaxAuthTries,
		AuthLogCallback: func(ssh.ConnMetadata, string, error) {
			if s.o.CutLogin {
				s.DropAll()
			}
		},
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.note(func(st *Stats) { st.KeysOffered++ })
			if s.o.Users == nil && (s.o.ExpectUser == "" || s.o.ExpectUser == c.User()) {
				return &ssh.Permissions{}, nil
			}
			for _, k := range s.o.Users[c.User()] {
				if string(k.Marshal()) == string(key.Marshal()) {
					return &ssh.Permissions{}, nil
				}
			}
			return nil, errRefused
		},
	}
	for _, k := range s.o.HostKeys {
		config.AddHostKey(k)
	}
	return config
}

func (s *Server) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	s.note(func(st *Stats) {
		st.Pending++
		st.MostPending = max(st.MostPending, st.Pending)
	})
	conn, chans, reqs, err := ssh.NewServerConn(c, s.config())
	s.note(func(st *Stats) { st.Pending-- })
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	s.note(func(st *Stats) { st.Logins++ })
	if s.o.Mute {
		go func() {
			for range reqs { //nolint:revive // on purpose: no answer
			}
		}()
	} else {
		go ssh.DiscardRequests(reqs)
	}
	open := make(chan struct{}, max(s.o.MaxSessions, 1))
	for n := range chans {
		switch {
		case n.ChannelType() == "direct-tcpip" && !s.o.NoForwards:
			s.wait.Go(func() { s.forward(n) })
		case n.ChannelType() != "session":
			_ = n.Reject(ssh.UnknownChannelType, n.ChannelType())
		case s.o.MaxSessions > 0 && len(open) >= s.o.MaxSessions:
			_ = n.Reject(ssh.Prohibited, "open failed")
		default:
			if s.o.MaxSessions > 0 {
				open <- struct{}{}
			}
			s.wait.Go(func() {
				s.session(n)
				if s.o.MaxSessions > 0 {
					<-open
				}
			})
		}
	}
	_ = conn.Close()
}
