package standin

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"github.com/kibotos/kibo-rollout/internal/release"
)

func nodeLock(state string) string { return path.Join(state, "node.lock") }

// Node is a running node service. Its methods may be called from several goroutines.
type Node struct {
	// Config is what the node runs with.
	Config NodeConfig

	env     Env
	release Release
	runtime runtime
	lock    io.Closer

	mu      sync.Mutex
	session string // this start
	known   bool   // ctrl has taken the session
	stopped bool
}

// NodeStart starts a node as its service does: takes the exclusive lock, keeps the package's runtime for VMMs,
// adopts the VMMs that its records name, sees to the data plane and says hello to ctrl. A ctrl that does not
// answer or refuses is no failure: Report tries again. Stop ends it.
func NodeStart(env Env, configPath string) (*Node, error) {
	r, err := ReadRelease(env, release.Node)
	if err != nil {
		return nil, err
	}
	if env.User() != "root" {
		return nil, errors.New("cannot start node: must be run as root")
	}
	c, err := ReadNodeConfig(env, configPath, r)
	if err != nil {
		return nil, err
	}
	if err := startSwitches(env, c.StateDir, r); err != nil {
		return nil, err
	}
	lock, err := env.TryLock(nodeLock(c.StateDir))
	if err != nil {
		return nil, fmt.Errorf("cannot start node: %w", err)
	}
	n := &Node{Config: c, env: env, release: r, lock: lock}
	if err := n.takeOver(configPath); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := n.Report(); err != nil {
		_, _ = fmt.Fprintf(env.Stderr(), "%v\n", err)
	}
	return n, nil
}

func (n *Node) takeOver(configPath string) error {
	random, err := n.env.Random(8)
	if err != nil {
		return fmt.Errorf("cannot start node: %w", err)
	}
	n.session = hex.EncodeToString(random)
	n.runtime, _, err = installRuntime(n.env, n.Config)
	if err != nil {
		return err
	}
	if err := n.adopt(); err != nil {
		return err
	}
	return startDataPlane(n.env, n.release, n.Config, configPath)
}

// adopt takes every recorded Instance over. One that cannot be adopted is marked FAILED and its VMM runs
// on (K41); a record that cannot be read is left as it is (K63).
func (n *Node) adopt() error {
	files, err := bindingFiles(n.env, n.Config.StateDir)
	if err != nil {
		return err
	}
	for _, file := range files {
		b, err := readBinding(n.env, file, n.release)
		if err != nil {
			_, _ = fmt.Fprintf(n.env.Stderr(), "%v\n", err)
			continue
		}
		b.State = instanceRunning
		if err := n.adoptable(b); err != nil {
			b.State = instanceFailed
			_, _ = fmt.Fprintf(n.env.Stderr(), "cannot adopt Instance %s: %v\n", b.Instance, err)
		}
		b.Format = n.release.Writes
		if err := writeBinding(n.env, n.Config.StateDir, b); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) adoptable(b Binding) error {
	if n.release.FailsToAdopt || n.switches().on(switchFailAdopt) {
		return errors.New("this build fails to adopt")
	}
	unit, err := n.env.Unit(b.Unit)
	if err != nil {
		return err
	}
	switch {
	case unit.Active != "active" || unit.MainPID == 0:
		return fmt.Errorf("its VMM %s is %s", b.Unit, unit.Active)
	case unit.MainPID != b.PID || unit.Start != b.Start:
		return fmt.Errorf("its VMM %s is another process than the record says", b.Unit)
	case !n.runtime.drives(b.Runtime):
		return fmt.Errorf("runtime %d cannot be driven with runtime %d", b.Runtime, n.runtime.Number)
	case !n.release.Guest.Has(b.Guest):
		return fmt.Errorf("guest protocol %d is out of range %s", b.Guest, n.release.Guest)
	}
	return nil
}

func (n *Node) switches() switches { return switches{n.env, n.Config.StateDir, n.release.Version} }

// load counts what the node has. Records are read each time: Instances come and go.
func (n *Node) load() (NodeLoad, error) {
	files, err := bindingFiles(n.env, n.Config.StateDir)
	if err != nil {
		return NodeLoad{}, err
	}
	s := n.switches()
	load := NodeLoad{Commands: s.count(switchCommand, 1), Transfers: s.count(switchTransfer, 1), Volumes: s.count(switchVolume, 1)}
	load.Plane, err = servingPlane(n.env, n.Config.StateDir)
	if err != nil {
		return NodeLoad{}, err
	}
	for _, file := range files {
		b, err := readBinding(n.env, file, n.release)
		if err != nil || b.State != instanceRunning {
			load.Failed++
			continue
		}
		load.Instances++
	}
	return load, nil
}

// Report tells ctrl once what the node has; call it every ReportInterval. It says hello first where ctrl does
// not know this start of the node, which also happens after a restart of ctrl. The error tells why
// ctrl does not count the node as connected.
func (n *Node) Report() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return errors.New("cannot report: node is stopped")
	}
	if err := endRetired(n.env, n.Config.StateDir); err != nil {
		return err
	}
	load, err := n.load()
	if err != nil {
		return err
	}
	if n.known {
		if err := n.call(OpReport, &load); err == nil {
			return nil
		}
		n.known = false
	}
	if err := n.call(OpHello, &load); err != nil {
		return err
	}
	n.known = true
	return nil
}

func (n *Node) call(op Op, load *NodeLoad) error {
	resp, err := n.env.CallCtrl(n.Config.Ctrl, Request{Op: op, Node: n.Config.Name, Version: n.release.Version,
		Revision: n.release.Revision, Session: n.session, Load: load})
	if err != nil {
		return fmt.Errorf("cannot reach ctrl at %s: %w", n.Config.Ctrl, err)
	}
	if resp.Error != "" {
		return fmt.Errorf("cannot connect to ctrl at %s: %s", n.Config.Ctrl, resp.Error)
	}
	return nil
}

// Stop ends the node and frees its lock. VMMs and data-plane processes live on.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	n.stopped = true
	if err := n.call(OpBye, nil); err != nil {
		_, _ = fmt.Fprintf(n.env.Stderr(), "%v\n", err)
	}
	return n.lock.Close()
}
