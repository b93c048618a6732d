package simfleet

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
)

// ctrlPort is where ctrl's API listens, at an address that exists only inside the fleet.
const ctrlPort = "7400"

// Fleet is a set of simulated hosts. Safe for concurrent use.
type Fleet struct {
	spec     Spec
	world    *host.World
	machines []*Machine
	byName   map[string]*Machine
	key      ed25519.PrivateKey // of the login user
	user     string
	debs     debStore
}

// Machine is one host of a fleet with its SSH server.
type Machine struct {
	*host.Machine

	Spec   HostSpec
	server *server
	index  int
}

// New makes a fleet: every machine is installed and its services run, but no port is open before Start.
func New(s Spec) (*Fleet, error) {
	s = s.defaults()
	if err := s.check(); err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(s.Random)
	if err != nil {
		return nil, fmt.Errorf("cannot make fleet: %w", err)
	}
	f := &Fleet{spec: s, key: key, user: s.User, byName: map[string]*Machine{}}
	f.world = host.NewWorld(s.Now, s.Sleep, s.Random, host.Latencies{})
	for i, h := range s.hosts() {
		m, err := f.machine(i, h)
		if err != nil {
			f.Close()
			return nil, err
		}
		f.machines = append(f.machines, m)
		f.byName[h.Name] = m
	}
	if err := f.install(); err != nil {
		f.Close()
		return nil, err
	}
	f.world.Lat = s.Lat
	return f, nil
}

func (s Spec) defaults() Spec {
	if s.Version == "" {
		s.Version = "0.1.2"
	}
	if s.User == "" {
		s.User = "ops"
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Random == nil {
		s.Random = rand.Reader
	}
	return s
}

func (f *Fleet) machine(i int, h HostSpec) (*Machine, error) {
	m, err := host.New(f.world, host.Config{
		Name: h.Name, Release: h.Release, Login: f.user, Password: h.Password, NoSudo: h.NoSudo, Index: i,
	})
	if err != nil {
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(f.spec.Random)
	if err != nil {
		return nil, fmt.Errorf("cannot make host key of %s: %w", h.Name, err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot make host key of %s: %w", h.Name, err)
	}
	login, err := ssh.NewPublicKey(f.key.Public())
	if err != nil {
		return nil, fmt.Errorf("cannot make login key: %w", err)
	}
	return &Machine{Machine: m, Spec: h, server: newServer(m, signer, login), index: i}, nil
}

// install puts Kibotos on every machine, ctrl first, and starts it.
func (f *Fleet) install() error {
	for _, part := range release.Parts() {
		for _, m := range f.machines {
			for _, p := range m.Spec.Parts {
				if p != part {
					continue
				}
				if err := f.installPart(m, p); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range f.machines {
		if f.spec.AgentVersion == "" || m.Spec.NoAgent {
			continue
		}
		deb, err := f.debs.agent(f.spec.AgentVersion)
		if err == nil {
			err = m.InstallDeb(context.Background(), deb)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// address is a machine's own address inside the fleet.
func address(m *Machine) string {
	return fmt.Sprintf("10.%d.%d.%d", 77+m.index/65536, m.index/256%256, m.index%256)
}

func (f *Fleet) ctrlAddress() string {
	for _, m := range f.machines {
		for _, p := range m.Spec.Parts {
			if p == release.Ctrl {
				return net.JoinHostPort(address(m), ctrlPort)
			}
		}
	}
	return net.JoinHostPort("10.77.255.254", ctrlPort)
}

// Start opens the port of every host on 127.0.0.1. It ends with Close.
func (f *Fleet) Start(ctx context.Context) error {
	var lc net.ListenConfig
	for _, m := range f.machines {
		if err := m.server.start(ctx, &lc); err != nil {
			return fmt.Errorf("cannot start host %s: %w", m.Name(), err)
		}
	}
	return nil
}

// Close cuts every connection, closes the ports and ends what runs on the hosts.
func (f *Fleet) Close() error {
	var wait sync.WaitGroup
	errs := make([]error, len(f.machines))
	for i, m := range f.machines {
		m.Machine.Close()
		wait.Go(func() { errs[i] = m.server.close() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Machine returns a host by its name, nil if there is none.
func (f *Fleet) Machine(name string) *Machine { return f.byName[name] }

// Machines returns every host in order.
func (f *Fleet) Machines() []*Machine { return f.machines }

// User is the login user's name.
func (f *Fleet) User() string { return f.user }

// Signer is the login user's key.
func (f *Fleet) Signer() (ssh.Signer, error) { return ssh.NewSignerFromKey(f.key) }

// SetFaults changes what is wrong with a host and its server.
func (m *Machine) SetFaults(change func(f *host.Faults)) error {
	m.Machine.SetFaults(change)
	return m.server.sync()
}
