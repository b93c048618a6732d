package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Order is one command to be run as a job.
type Order struct {
	Key     string       `json:"key"`
	Request gate.Request `json:"request"`
	Argv    []string     `json:"argv"`
}

// Check reports what is wrong with the order, or nil.
func (o Order) Check() error {
	if err := CheckKey(o.Key); err != nil {
		return err
	}
	switch {
	case o.Request.Operation == "":
		return errors.New("a job needs an operation")
	case len(o.Argv) == 0 || o.Argv[0] == "":
		return errors.New("a job needs a command")
	}
	return o.Request.Check()
}

func (o Order) same(other Order) bool {
	return o.Request.Operation == other.Request.Operation && slices.Equal(o.Argv, other.Argv)
}

// change is what the order is permitted to do to packages, also where no hook is in force to ask about it.
func (o Order) change() Change {
	c := newChange()
	for name, version := range o.Request.Packages {
		switch {
		case !Gated(name):
		case o.Request.Operation == gate.OpInstall:
			c.Install[name] = version
		case o.Request.Operation == gate.OpRemove:
			c.Remove[name] = version
		}
	}
	return c
}

// CheckKey reports what is wrong with a job's key, or nil. The key becomes a directory and a unit name.
func CheckKey(key string) error {
	if ok, _ := regexp.MatchString(`^[A-Za-z0-9._-]{1,200}$`, key); !ok || key == "." || key == ".." {
		return fmt.Errorf("%q is no job key: up to 200 letters, digits, dots, underscores and hyphens", key)
	}
	return nil
}

// UnitName is the transient unit of a job.
func UnitName(key string) string { return "kibo-job-" + key + ".service" }

// keyOfUnit is the inverse of UnitName.
func keyOfUnit(unit string) (string, bool) {
	key, ok := strings.CutPrefix(unit, "kibo-job-")
	if key, ok2 := strings.CutSuffix(key, ".service"); ok && ok2 && CheckKey(key) == nil {
		return key, true
	}
	return "", false
}

// jobDir is what a job leaves on disk. Written in this order: job.json and allow.json by who asked for it,
// began.json before the command is started, output meanwhile, exit.json when it has ended.
type jobDir string

func (d jobDir) order() string  { return filepath.Join(string(d), "job.json") }
func (d jobDir) window() string { return filepath.Join(string(d), "allow.json") }
func (d jobDir) began() string  { return filepath.Join(string(d), "began.json") }
func (d jobDir) exit() string   { return filepath.Join(string(d), "exit.json") }
func (d jobDir) output() string { return filepath.Join(string(d), "output") }
func (d jobDir) alive() string  { return filepath.Join(string(d), "alive") }

// ordered is job.json: what was asked, and the moment at which the gate was open for it.
type ordered struct {
	Order
	Permitted time.Time `json:"permitted"`
}

// begun is began.json.
type begun struct {
	Started time.Time `json:"started"`
	PID     int       `json:"pid"`
}

// ended is exit.json.
type ended struct {
	Exit  int       `json:"exit"`
	Ended time.Time `json:"ended"`
}

func (d jobDir) exists() bool {
	_, err := os.Lstat(d.order())
	return err == nil
}

// running reports whether the process that runs the job is alive.
func (d jobDir) running() (bool, error) {
	l, err := tryLock(d.alive(), unix.LOCK_SH)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	l.release()
	return false, nil
}

// describe reads what is on disk of the job. left says whether processes of it are still there.
func (d jobDir) describe(left func(key string) (bool, error)) (gate.Job, error) {
	key := filepath.Base(string(d))
	var asked ordered
	if err := readJSON(d.order(), &asked); errors.Is(err, os.ErrNotExist) {
		return gate.Job{Key: key, State: gate.JobUnknown, Reason: "there is no such job on this host"}, nil
	} else if err != nil {
		return gate.Job{}, err
	}
	job := gate.Job{Key: key, Operation: asked.Request.Operation, Argv: asked.Argv}
	// Whether it runs is asked before exit.json is looked for: the other way round, a job that ends in between
	// would look lost.
	running, err := d.running()
	if err != nil {
		return gate.Job{}, err
	}
	if !running {
		if running, err = left(key); err != nil {
			return gate.Job{}, err
		}
	}
	var began begun
	switch err := readJSON(d.began(), &began); {
	case err == nil:
		job.Started = began.Started
	case !errors.Is(err, os.ErrNotExist):
		return gate.Job{}, err
	}
	if job.Output, err = tail(d.output(), maxTail); err != nil {
		return gate.Job{}, err
	}
	var end ended
	switch err := readJSON(d.exit(), &end); {
	case err == nil:
		job.State, job.Exit, job.Ended = gate.JobFinished, end.Exit, end.Ended
	case !errors.Is(err, os.ErrNotExist):
		return gate.Job{}, err
	case running:
		job.State = gate.JobRunning
	case began.Started.IsZero():
		job.State, job.Reason = gate.JobLost, "it was asked for but never started"
	default:
		job.State, job.Reason = gate.JobLost, "it ended without leaving an exit status; look at what it was to change before going on"
	}
	return job, nil
}
