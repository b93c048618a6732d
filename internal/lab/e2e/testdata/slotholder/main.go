// Command slotholder takes a FleetLock slot and never gives it back: it waits to be killed.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kibotos/kibo-rollout/agent/fleetlock"
)

func main() {
	c := fleetlock.Client{URL: os.Args[1], Group: os.Args[2], ID: os.Args[3]}
	if err := c.Lock(context.Background()); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "held")
	select {}
}
