package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// CtrlServer is a running ctrl. Handle may be called from several goroutines.
type CtrlServer struct {
	// Listen is the address that the API has to be reachable at.
	Listen string

	env      Env
	release  Release
	database string
	lock     io.Closer

	mu      sync.Mutex
	live    map[string]session
	refused map[string]string // node → why it was refused since this start
	planes  map[string]string // node → data plane it last told of since this start; outlives its connection
	stopped bool
}

// session is one connected start of a node. It is not kept over a restart of ctrl: nodes are
// READY only once they have connected again.
type session struct {
	id   string
	last time.Time
	load NodeLoad
}

// CtrlStart starts ctrl as its service does: it makes database and PKI on first start, and refuses a
// state that it cannot serve. Stop ends it.
func CtrlStart(env Env, configPath string) (*CtrlServer, error) {
	r, err := ReadRelease(env, release.Ctrl)
	if err != nil {
		return nil, err
	}
	c, err := ReadCtrlConfig(env, configPath, r)
	if err != nil {
		return nil, err
	}
	if err := startSwitches(env, c.StateDir, r); err != nil {
		return nil, err
	}
	lock, err := env.TryLock(ctrlLock(c.StateDir))
	if err != nil {
		return nil, fmt.Errorf("cannot start ctrl: %w", err)
	}
	if err := prepareCtrl(env, r, c, configPath); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &CtrlServer{Listen: c.Listen, env: env, release: r, database: DatabasePath(c.StateDir), lock: lock,
		live: map[string]session{}, refused: map[string]string{}, planes: map[string]string{}}, nil
}

// startSwitches applies what can go wrong at the start of any service.
func startSwitches(env Env, state string, r Release) error {
	s := switches{env, state, r.Version}
	if n := s.count(switchSlowStart, 10); n > 0 {
		env.Sleep(time.Duration(n) * time.Second)
	}
	if r.FailsToStart || s.on(switchFailStart) {
		return fmt.Errorf("cannot start %s %s: this build fails to start", r.Part.Package(), r.Version)
	}
	return nil
}

func prepareCtrl(env Env, r Release, c CtrlConfig, configPath string) error {
	if err := makePKI(env, c.StateDir); err != nil {
		return err
	}
	if err := checkPKI(env, c.StateDir); err != nil {
		return err
	}
	database := DatabasePath(c.StateDir)
	pairs, err := env.ReadStore(database)
	if errors.Is(err, fs.ErrNotExist) {
		return env.UpdateStore(database, func(pairs map[string]string) error {
			setSchema(pairs, r.Schema, false)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("cannot read database: %w", err)
	}
	version, dirty, err := schemaOf(pairs)
	if err != nil {
		return err
	}
	if err := schemaError(r, version, dirty); err != nil {
		return fmt.Errorf("cannot start ctrl: %w", err)
	}
	if version < r.Schema {
		return fmt.Errorf("cannot start ctrl: schema %d is older than %d; run kibotos-ctrl migrate --config %s", version, r.Schema, configPath)
	}
	return nil
}

// Stop ends ctrl. Nodes, VMMs and data-plane processes go on without it.
func (s *CtrlServer) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return s.lock.Close()
}

// Handle answers one request.
func (s *CtrlServer) Handle(req Request) Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return Response{Error: "ctrl is stopped"}
	}
	var err error
	var resp Response
	switch req.Op {
	case OpHello:
		err = s.hello(req)
	case OpReport:
		err = s.report(req)
	case OpBye:
		if s.live[req.Node].id == req.Session {
			delete(s.live, req.Node)
		}
	case OpList:
		resp.Nodes, err = s.list()
	case OpDrain:
		err = s.drain(req.Node, true)
	case OpCancelDrain:
		err = s.drain(req.Node, false)
	case OpSession:
		resp.Plane, err = s.session(req.Node)
	case OpResolve:
		if req.Level > s.release.Level {
			err = fmt.Errorf("interface level %d is not known to ctrl %s", req.Level, s.release.Version)
		}
	default:
		err = fmt.Errorf("unknown request %q", req.Op)
	}
	if err != nil {
		resp.Error = err.Error()
	}
	return resp
}

func (s *CtrlServer) hello(req Request) error {
	if req.Node == "" || req.Session == "" || req.Load == nil {
		return errors.New("hello needs node, session and load")
	}
	if err := Accepts(s.release, Release{Version: req.Version, Revision: req.Revision}); err != nil {
		s.refused[req.Node] = err.Error()
		delete(s.live, req.Node)
		return err
	}
	delete(s.refused, req.Node)
	err := s.updateNode(req.Node, func(n *nodeRecord) error {
		n.Version, n.Revision = req.Version, req.Revision
		return nil
	})
	if err != nil {
		return err
	}
	s.connected(req)
	return nil
}

// errUnknownSession makes a node say hello again.
var errUnknownSession = errors.New("unknown session")

func (s *CtrlServer) report(req Request) error {
	live, ok := s.live[req.Node]
	if !ok || live.id != req.Session || req.Load == nil {
		return errUnknownSession
	}
	s.connected(req)
	return nil
}

func (s *CtrlServer) connected(req Request) {
	s.live[req.Node] = session{id: req.Session, last: s.env.Now(), load: *req.Load}
	s.planes[req.Node] = req.Load.Plane
}

// session tells where new data-plane connections of a node go. A stopped node's are still known, unless ctrl
// was restarted since it was there (K34).
func (s *CtrlServer) session(node string) (string, error) {
	if plane := s.planes[node]; plane != "" {
		return plane, nil
	}
	return "", fmt.Errorf("node %s has told of no data plane since ctrl started", strconv.Quote(node))
}

func (s *CtrlServer) drain(name string, drained bool) error {
	pairs, err := s.env.ReadStore(s.database)
	if err != nil {
		return err
	}
	if _, ok := pairs[prefixNode+name]; !ok {
		return fmt.Errorf("no node %s", strconv.Quote(name))
	}
	return s.updateNode(name, func(n *nodeRecord) error {
		n.Drained = drained
		return nil
	})
}

func (s *CtrlServer) updateNode(name string, change func(*nodeRecord) error) error {
	return s.env.UpdateStore(s.database, func(pairs map[string]string) error {
		var n nodeRecord
		if old, ok := pairs[prefixNode+name]; ok {
			if err := json.Unmarshal([]byte(old), &n); err != nil {
				return fmt.Errorf("cannot read record of node %s: %w", name, err)
			}
		}
		if err := change(&n); err != nil {
			return err
		}
		pairs[prefixNode+name] = encode(n)
		return nil
	})
}

func (s *CtrlServer) list() ([]NodeRow, error) {
	pairs, err := s.env.ReadStore(s.database)
	if err != nil {
		return nil, err
	}
	for name := range s.refused {
		if _, ok := pairs[prefixNode+name]; !ok {
			pairs[prefixNode+name] = encode(nodeRecord{Version: "-"})
		}
	}
	var rows []NodeRow
	for _, name := range names(pairs, prefixNode) {
		var n nodeRecord
		if err := json.Unmarshal([]byte(pairs[prefixNode+name]), &n); err != nil {
			return nil, fmt.Errorf("cannot read record of node %s: %w", name, err)
		}
		rows = append(rows, s.row(name, n))
	}
	return rows, nil
}

// row makes a node's line: what is not connected is NOT-READY whatever else it is.
func (s *CtrlServer) row(name string, n nodeRecord) NodeRow {
	row := NodeRow{Name: name, Release: n.Version, Drain: n.Drained, State: StateNotReady, Reason: s.refused[name]}
	live, ok := s.live[name]
	if !ok || s.env.Now().Sub(live.last) > SilenceLimit {
		if row.Reason == "" {
			row.Reason = "not connected"
		}
		return row
	}
	row.NodeLoad = live.load
	switch busy := row.Commands + row.Transfers + row.Volumes; {
	case !n.Drained:
		row.State = StateReady
	case busy > 0:
		row.State = StateDraining
	default:
		row.State = StateDrained
	}
	return row
}
