package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
)

func kind(err error) remote.Kind {
	var e *remote.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func does(effect command.Effect) command.Command {
	return command.Command{Argv: []string{"do", string(effect)}, Effect: effect}
}

// proves that nothing but what is permitted reaches a host, and that saying nothing is not permitted
func TestReadOnlyAndStagesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		wrap    func(string, remote.Conn) remote.Conn
		allowed []command.Effect
		upload  bool
	}{
		"read only":   {remote.ReadOnly, []command.Effect{command.Reads}, false},
		"stages only": {remote.StagesOnly, []command.Effect{command.Reads, command.Stages}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, effect := range []command.Effect{"", "READS", command.Reads, command.Stages, command.Changes, command.Disrupts} {
				ok := slices.Contains(c.allowed, effect)
				var stubs []remotetest.Stub
				if ok {
					stubs = []remotetest.Stub{{Line: does(effect).String(), Times: 3}}
				}
				conn := c.wrap("node-a", remotetest.NewFake(t, "node-a", stubs...))
				_, errRun := conn.Run(t.Context(), does(effect))
				_, errHold := conn.Hold(t.Context(), does(effect))
				b := command.Batch{Commands: []command.Command{does(effect), does(effect)}}
				if ok {
					b.Commands = b.Commands[:1]
				} else {
					b.Commands[0] = does(command.Reads) // one bad command refuses the whole batch
				}
				_, errBatch := conn.RunBatch(t.Context(), b)
				for _, err := range []error{errRun, errHold, errBatch} {
					if (err == nil) != ok || err != nil && kind(err) != remote.Refused {
						t.Errorf("effect %q: got %v", effect, err)
					}
				}
			}
			conn := c.wrap("node-a", remotetest.NewFake(t, "node-a"))
			err := conn.Upload(t.Context(), emptyFile())
			if (err == nil) != c.upload {
				t.Errorf("upload: %v", err)
			}
		})
	}
}

func emptyFile() remote.Upload {
	return remote.Upload{
		Source: bytes.NewReader(nil), Path: "f", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	}
}

func TestRecordAndLimit(t *testing.T) {
	r, slots := &remote.Recorder{}, remote.NewSlots(1)
	fake := remotetest.NewFake(t, "node-a", remotetest.Stub{Line: "do reads", Times: 3})
	conn := remote.Limit("node-a", remote.Record("node-a", fake, r), slots)
	_, err1 := conn.Run(t.Context(), does(command.Reads))
	_, err2 := conn.RunBatch(t.Context(), command.Batch{Commands: []command.Command{does(command.Reads)}})
	h, err3 := conn.Hold(t.Context(), does(command.Reads))
	if err := errors.Join(err1, err2, err3, h.Release(), conn.Upload(t.Context(), emptyFile())); err != nil {
		t.Fatal(err)
	}
	calls := r.Calls()
	if len(calls) != 4 || calls[0].Command.String() != "do reads" || calls[3].Path != "f" || calls[3].Host != "node-a" {
		t.Errorf("got %+v", calls)
	}
	release, err := slots.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := conn.Run(ctx, does(command.Reads)); kind(err) != remote.TimedOut {
		t.Errorf("no slot was free: %v", err)
	}
}

// mortal is a connection that can be lost.
type mortal struct {
	remote.Conn
	lost   chan struct{}
	closed atomic.Bool
}

func (m *mortal) Lost() <-chan struct{} { return m.lost }
func (m *mortal) Close() error {
	m.closed.Store(true)
	return nil
}

// proves one connection a host however many ask at a time, a new one after loss, and both limits
func TestPool(t *testing.T) {
	var mu sync.Mutex
	dials, now, most := map[string]int{}, map[string]int{}, map[string]int{}
	via := func(host string) string {
		if host[0] == 'j' {
			return "bastion"
		}
		return ""
	}
	count := func(key string, n int) {
		mu.Lock()
		defer mu.Unlock()
		now[key] += n
		most[key] = max(most[key], now[key])
	}
	p := remote.NewPool(remote.PoolOptions{Forks: 6, PerJump: 2, Via: via, Dial: func(_ context.Context, host string) (remote.Conn, error) {
		mu.Lock()
		dials[host]++
		mu.Unlock()
		count("all", 1)
		count(via(host), 1)
		time.Sleep(5 * time.Millisecond)
		count("all", -1)
		count(via(host), -1)
		return &mortal{lost: make(chan struct{})}, nil
	}})
	var hosts []string
	for i := range 10 {
		hosts = append(hosts, fmt.Sprintf("d%d", i), fmt.Sprintf("j%d", i))
	}
	var wait sync.WaitGroup
	for range 3 {
		for _, host := range hosts {
			wait.Go(func() {
				if _, err := p.Conn(t.Context(), host); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	for _, host := range hosts {
		if dials[host] != 1 {
			t.Errorf("%s: %d connections", host, dials[host])
		}
	}
	if most["all"] > 6 || most["bastion"] > 2 {
		t.Errorf("%d at a time, %d through one jump host", most["all"], most["bastion"])
	}
	first, _ := p.Conn(t.Context(), "d0")
	close(first.(*mortal).lost) //nolint:errcheck,forcetypeassert // made above
	second, err := p.Conn(t.Context(), "d0")
	if err != nil || second == first || dials["d0"] != 2 {
		t.Errorf("after the loss: same connection %v, %d dials, %v", second == first, dials["d0"], err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if !second.(*mortal).closed.Load() { //nolint:errcheck,forcetypeassert // made above
		t.Error("a connection is open after Close")
	}
	if _, err := p.Conn(t.Context(), "d0"); kind(err) != remote.Lost {
		t.Errorf("a closed pool: %v", err)
	}
}

func TestPoolFailures(t *testing.T) {
	var dials atomic.Int32
	down := &remote.Error{Host: "x", Kind: remote.Unreachable, Err: errors.New("down")}
	p := remote.NewPool(remote.PoolOptions{Dial: func(ctx context.Context, _ string) (remote.Conn, error) {
		if dials.Add(1) == 1 {
			return nil, down
		}
		<-ctx.Done()
		return nil, &remote.Error{Host: "x", Kind: remote.Unreachable, Err: ctx.Err()}
	}})
	if _, err := p.Conn(t.Context(), "x"); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Conn(ctx, "x"); kind(err) != remote.Unreachable || dials.Load() != 2 {
		t.Errorf("a failure was kept: %v after %d dials", err, dials.Load())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
