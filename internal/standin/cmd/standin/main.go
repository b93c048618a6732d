//go:build linux

// Command standin is every program of the stand-in Kibotos in one: it is installed as kibotos-ctrl, kibotos-node,
// kibotos-e2b, kibotos-gw and kibo, and acts by the name it is called by.
package main

import (
	"os"
	"path/filepath"

	"github.com/kibotos/kibo-rollout/internal/standin/hostenv"
)

func main() {
	os.Exit(hostenv.Run(filepath.Base(os.Args[0]), os.Args[1:], os.Stdout, os.Stderr))
}
