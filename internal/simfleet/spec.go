// Package simfleet is a whole Kibotos fleet in one process, without root: every host has a real SSH server with a
// real SFTP subsystem on loopback, and behind it a simulated machine that runs the stand-in Kibotos.
// It says nothing about real Debian, apt or systemd; for those there is the lab.
package simfleet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/host"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// Spec says what a fleet consists of.
type Spec struct {
	Ctrl, Nodes, E2B, GW int        // how many hosts of each kind, named ctrl-1, node-1, …
	Hosts                []HostSpec // instead of the counts

	Version          string // release that is installed, a key of the stand-in's catalogue; default 0.1.2
	InstancesPerNode int    // VMs on each node
	AgentVersion     string // version of kibo-agent that is installed; empty: none
	User             string // login user; default ops

	Lat    host.Latencies                             // of simulated actions, once the fleet is set up
	Now    func() time.Time                           // default: the real clock
	Sleep  func(ctx context.Context, d time.Duration) // default: a real timer
	Random io.Reader                                  // safe for concurrent use; default: crypto/rand
}

// HostSpec is one host.
type HostSpec struct {
	Name     string
	Parts    []release.Part
	NodeName string // at ctrl; default Name
	Version  string // default: the fleet's
	Release  string // of Debian, "12" or "13"; default: in turns
	Password string // sudo asks for it
	NoSudo   bool
	NoAgent  bool // kibo-agent is missing although AgentVersion is set
}

// hosts is the spec with every host named.
func (s Spec) hosts() []HostSpec {
	out := slices.Clone(s.Hosts)
	if len(out) == 0 {
		for _, kind := range []struct {
			part release.Part
			n    int
		}{{release.Ctrl, s.Ctrl}, {release.Node, s.Nodes}, {release.E2B, s.E2B}, {release.GW, s.GW}} {
			width := len(strconv.Itoa(kind.n))
			for i := 1; i <= kind.n; i++ {
				out = append(out, HostSpec{Name: fmt.Sprintf("%s-%0*d", kind.part, width, i), Parts: []release.Part{kind.part}})
			}
		}
	}
	for i := range out {
		h := &out[i]
		if h.NodeName == "" {
			h.NodeName = h.Name
		}
		if h.Version == "" {
			h.Version = s.Version
		}
		if h.Release == "" {
			h.Release = []string{"12", "13"}[i%2]
		}
	}
	return out
}

func (s Spec) check() error {
	seen := map[string]bool{}
	for _, h := range s.hosts() {
		if h.Name == "" || seen[h.Name] {
			return fmt.Errorf("cannot make fleet: host name %q is empty or used twice", h.Name)
		}
		seen[h.Name] = true
		if _, ok := standin.Find(h.Version); !ok {
			return fmt.Errorf("cannot make fleet: host %s: no release %q, there are %v", h.Name, h.Version, standin.Keys())
		}
	}
	return nil
}
