package agent

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Identity is where this host says who it is and since when it is up. The zero value knows nothing, and what
// cannot be read is not known: a window bound to it is closed.
type Identity struct {
	Root string               // "/"; empty: unknown
	Up   func() time.Duration // since boot, sleep included; nil: unknown
}

// Here is what the host knows of itself, with a given time of day and without its holds.
func (i Identity) Here(now time.Time) gate.Here {
	h := gate.Here{Now: now}
	if i.Root == "" || i.Up == nil {
		return h
	}
	h.MachineID = firstLine(filepath.Join(i.Root, "etc/machine-id"))
	if up := i.Up(); up > 0 {
		h.BootID, h.Up = firstLine(filepath.Join(i.Root, "proc/sys/kernel/random/boot_id")), up
	}
	return h
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// Uptime is the time since boot by a clock that runs on during sleep and that nobody can set; zero: unknown.
func Uptime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Synchronised reports whether the kernel's clock has been set by a time service since boot.
func Synchronised() bool {
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	return err == nil && t.Status&unix.STA_UNSYNC == 0
}
