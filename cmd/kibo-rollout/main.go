// Command kibo-rollout upgrades a fleet of Kibotos hosts over SSH, step by step, through a gate.
package main

import (
	"context"
	"os"
	"os/signal"
	"os/user"
	"sync"
	"syscall"
	"time"

	"github.com/kibotos/kibo-rollout/internal/cli"
)

// version is set when the program is built.
var version = "dev"

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	go watchSignals(stop, cancel)
	home, _ := os.UserHomeDir() // empty: commands that need it say so
	code := cli.Main(ctx, cli.World{
		Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Now: time.Now, Pause: pause,
		Stop: stop, Home: home, User: who(),
	}, os.Args[1:])
	cancel()
	os.Exit(code)
}

// watchSignals: the first signal finishes the current command and stops, the second cancels what is waited for, the third ends
// the program at once.
func watchSignals(stop chan struct{}, cancel context.CancelFunc) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	var once sync.Once
	for n := 0; ; n++ {
		<-signals
		switch n {
		case 0:
			once.Do(func() { close(stop) })
			_, _ = os.Stderr.WriteString("\nstopping after the current command; once more to cancel waiting, a third time to leave at once\n")
		case 1:
			cancel()
		default:
			os.Exit(130)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// who names the operator for the windows and records that a run leaves on hosts.
func who() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}
