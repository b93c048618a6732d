package host

import (
	"context"
	"io"
	"sync"
	"time"
)

// Latencies say how long simulated actions take. The zero value is as fast as possible.
type Latencies struct {
	Install time.Duration // apt-get install of one package
	Start   time.Duration // systemctl start
	Stop    time.Duration // systemctl stop
	Unpack  time.Duration // dpkg-deb -x
	Program time.Duration // every run of a Kibotos program
	Command time.Duration // every exec
}

// World is what the machines of a fleet share: the clock, randomness and the network between them.
type World struct {
	Now    func() time.Time
	Sleep  func(ctx context.Context, d time.Duration)
	Random io.Reader // safe for concurrent use
	Lat    Latencies

	programs map[string]program
	debs     debCache
	mu       sync.RWMutex
	apis     map[string]api // by the address that they listen on
}

// NewWorld makes a world. sleep nil waits with a timer of the real clock.
func NewWorld(now func() time.Time, sleep func(context.Context, time.Duration), random io.Reader, lat Latencies) *World {
	if sleep == nil {
		sleep = realSleep
	}
	return &World{Now: now, Sleep: sleep, Random: random, Lat: lat, programs: programs(), apis: map[string]api{}}
}

func realSleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
