package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// grant is a single-use window that a package manager took outside of a job. apt's hook is asked first and
// dpkg's afterwards, once for each dpkg that apt starts: all of them are the one use, told by the process
// they have above them.
type grant struct {
	Holder    process   `json:"holder"`
	Permitted time.Time `json:"permitted"`
}

func (g Guard) grantFile() string  { return filepath.Join(g.Jobs.Dir, "grant.json") }
func (g Guard) grantAllow() string { return filepath.Join(g.Jobs.Dir, "grant-allow.json") }

// holder is the package manager on whose behalf the hook was called: the outermost apt or dpkg above it.
func (g Guard) holder() (process, error) {
	up, err := g.Procs.ancestors(g.PID)
	if err != nil {
		return process{}, err
	}
	var found process
	for _, p := range up {
		switch p.name {
		case "dpkg", "apt", "apt-get", "aptitude", "aptd", "unattended-upgr", "packagekitd":
			found = p
		}
	}
	if found.PID == 0 {
		return process{}, fmt.Errorf("cannot find the package manager above process %d", g.PID)
	}
	return found, nil
}

// consume takes the single-use window for the package manager above (Z3: before the operation).
func (g Guard) consume(reqs []gate.Request) error {
	holder, err := g.holder()
	if err != nil {
		return err
	}
	held, err := g.Jobs.Window.lock(context.Background())
	if err != nil {
		return err
	}
	defer held.release()
	now := g.Jobs.Window.Now()
	for i, req := range reqs {
		v := gate.Verdict{}
		if i == 0 {
			v = g.Jobs.Window.take(g.grantAllow(), now, req)
		} else {
			_, v = g.Jobs.Window.judge(g.grantAllow(), now, req)
		}
		if !v.Open {
			return &gate.Denial{Code: v.Code, Reason: v.Reason}
		}
	}
	return writeJSON(g.grantFile(), grant{Holder: holder, Permitted: now}, 0o600)
}

// granted reports whether the package manager above took a single-use window before that covers the change.
func (g Guard) granted(c Change) bool {
	var have grant
	if readJSON(g.grantFile(), &have) != nil {
		return false
	}
	holder, err := g.holder()
	if err != nil || !holder.same(have.Holder) {
		return false
	}
	f, err := g.Jobs.Window.read(g.grantAllow())
	if err != nil {
		return false
	}
	reqs, err := g.requests(c, len(f.SHA256) > 0)
	if err != nil {
		return false
	}
	for _, req := range reqs {
		if !g.Jobs.Window.covers(f, have.Permitted, req).Open {
			return false
		}
	}
	return len(reqs) > 0
}
