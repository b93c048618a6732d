package memenv

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"time"

	"github.com/kibotos/kibo-rollout/internal/standin"
)

// env is a host as seen by one program.
type env struct {
	*Host
	executable, user string
	stdout, stderr   io.Writer
}

var _ standin.Env = env{}

func (e env) Stdout() io.Writer   { return e.stdout }
func (e env) Stderr() io.Writer   { return e.stderr }
func (e env) User() string        { return e.user }
func (e env) Executable() string  { return e.executable }
func (e env) Now() time.Time      { return e.now() }
func (e env) Sleep(time.Duration) {} // time on a host in memory passes only by its clock

func (e env) Random(n int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Host.random++
	seed := [32]byte{}
	binary.BigEndian.PutUint64(seed[:], e.Host.random)
	out := make([]byte, n)
	_, err := rand.NewChaCha8(seed).Read(out) // never fails; the same host always draws the same bytes
	return out, err
}

func (e env) CallCtrl(addr string, req standin.Request) (standin.Response, error) {
	return e.network.Call(addr, req)
}
