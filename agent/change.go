package agent

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Gated reports whether changes of the package are the gate's business. The agent's own package is not: to
// remove it leaves the gate closed, and to purge it is how a site takes the gate away.
func Gated(pkg string) bool { return strings.HasPrefix(pkg, "kibotos-") }

// Change is what a package manager is about to do to gated packages.
type Change struct {
	Install map[string]string // name → version to be unpacked
	Remove  map[string]string // name → version installed now
	Debs    []string          // files of Install
	Unclear []string          // what is to be done to a gated package but cannot be understood, in words
}

// install adds a .deb that is to be unpacked. Two versions of a package in one go would hide one behind the other.
func (c *Change) install(name, version, deb string) {
	if had, twice := c.Install[name]; twice && had != version {
		c.Unclear = append(c.Unclear, fmt.Sprintf("%s in two versions at once, %s and %s", name, had, version))
	}
	c.Install[name] = version
	c.Debs = append(c.Debs, deb)
}

func newChange() Change {
	return Change{Install: map[string]string{}, Remove: map[string]string{}}
}

func (c Change) empty() bool { return len(c.Install)+len(c.Remove)+len(c.Unclear) == 0 }

// Words says what the change is.
func (c Change) Words() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Install)) {
		all = append(all, "install "+name+" "+c.Install[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Remove)) {
		all = append(all, "remove "+name+" "+c.Remove[name])
	}
	return strings.Join(append(all, c.Unclear...), ", ")
}

// Guard decides on changes that a package manager asks about through its hook.
type Guard struct {
	Jobs  Jobs
	Procs Procs
	Sum   func(path string) (string, error) // SHA-256 of a file in lower-case hex
	PID   int                               // of the hook's own process
}

// Permit returns nil if the change may go on, else the reason. A change inside a job is judged by the window
// the job was permitted by, at the moment it was permitted: expiry never interrupts an operation that has
// begun, and a consumed window still covers what it was consumed for.
func (g Guard) Permit(c Change) error {
	if c.empty() {
		return nil
	}
	if err := g.permit(c); err != nil {
		return err
	}
	// If this cannot be noted, the change is reported later as one that went past the gate: the safe side.
	_ = g.Jobs.Versions.Approve(c)
	return nil
}

func (g Guard) permit(c Change) error {
	if len(c.Unclear) > 0 {
		return gate.Deny(gate.CodeBadRequest, "%s", strings.Join(c.Unclear, "; "))
	}
	f, _ := g.Jobs.Window.read(g.Jobs.Window.Path) // only to see whether checksums are wanted
	reqs, err := g.requests(c, len(f.SHA256) > 0)
	if err != nil {
		return err
	}
	byJob, jobErr := g.jobPermits(c)
	if byJob {
		return nil
	}
	if g.granted(c) {
		return nil
	}
	now := g.Jobs.Window.Now()
	f, v := g.all(g.Jobs.Window.Path, now, reqs)
	if v.Code == gate.CodeExpired {
		_ = g.Jobs.Window.Seen.note(now) // as in Window.Judge
	}
	switch {
	case v.Open && f.SingleUse:
		return g.consume(reqs)
	case v.Open:
		return nil
	case jobErr != nil:
		return jobErr
	}
	return &gate.Denial{Code: v.Code, Reason: v.Reason}
}

// requests puts the change into the gate's terms.
func (g Guard) requests(c Change, sums bool) ([]gate.Request, error) {
	var reqs []gate.Request
	if len(c.Install) > 0 {
		req := gate.Request{Operation: gate.OpInstall, Packages: c.Install}
		for _, deb := range c.Debs {
			if !sums {
				break
			}
			sum, err := g.Sum(deb)
			if err != nil {
				return nil, err
			}
			req.SHA256 = append(req.SHA256, sum)
		}
		reqs = append(reqs, req)
	}
	if len(c.Remove) > 0 {
		reqs = append(reqs, gate.Request{Operation: gate.OpRemove, Packages: c.Remove})
	}
	return reqs, nil
}

// all asks the window at path for every request; the first refusal counts.
func (g Guard) all(path string, now time.Time, reqs []gate.Request) (f gate.AllowFile, v gate.Verdict) {
	for _, req := range reqs {
		if f, v = g.Jobs.Window.judge(path, now, req); !v.Open {
			break
		}
	}
	return f, v
}

// jobPermits asks the job this process runs in, if any. The error says why a job does not permit the change.
func (g Guard) jobPermits(c Change) (bool, error) {
	key, err := g.Procs.jobKey(g.PID)
	if err != nil || key == "" {
		return false, nil // no job to ask: the allow-file decides
	}
	d := g.Jobs.dir(key)
	var asked ordered
	if err := readJSON(d.order(), &asked); err != nil {
		return false, err
	}
	if _, err := os.Lstat(d.exit()); err == nil {
		return false, fmt.Errorf("job %s has ended; what it left behind may change nothing", key)
	}
	f, err := g.Jobs.Window.read(d.window())
	if err != nil {
		return false, err
	}
	reqs, err := g.requests(c, len(f.SHA256)+len(asked.Request.SHA256) > 0)
	if err != nil {
		return false, err
	}
	for _, req := range reqs {
		req.Run, req.Plan = asked.Request.Run, asked.Request.Plan
		if v := g.Jobs.Window.covers(f, asked.Permitted, req); !v.Open {
			return false, &gate.Denial{Code: v.Code, Reason: fmt.Sprintf("inside job %s: %s", key, v.Reason)}
		}
		// The job's own words bind as a window does: it may do what it was asked to do and nothing beside.
		own := gate.AllowFile{NotAfter: f.NotAfter, Operations: []string{asked.Request.Operation},
			Packages: asked.Request.Packages, SHA256: asked.Request.SHA256}
		if v := gate.Decide(asked.Permitted, own, nil, req); !v.Open {
			return false, &gate.Denial{Code: v.Code, Reason: fmt.Sprintf("job %s was permitted for something else: %s", key, v.Reason)}
		}
	}
	return true, nil
}
