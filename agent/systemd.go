package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// stopLimit is how long a shutdown waits for a job that is at work.
const stopLimit = 15 * time.Minute

// Systemd starts jobs as transient units of the system's systemd.
type Systemd struct {
	Program string // the agent's own path, run as `Program job --key KEY`
	Cgroups string // normally /sys/fs/cgroup
}

// Start implements Units.
func (s Systemd) Start(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	conn, err := dbus.NewWithContext(ctx)
	if err != nil {
		return fmt.Errorf("cannot reach systemd: %w", err)
	}
	defer conn.Close()
	result := make(chan string, 1)
	properties := []dbus.Property{
		dbus.PropDescription("Kibotos rollout job " + key),
		dbus.PropExecStart([]string{s.Program, "job", "--key", key}, true),
		dbus.PropType("exec"),
		// Ending the unit must never end what a command has started on purpose (K41), nor an apt-get half-way.
		property("KillMode", "process"),
		property("TimeoutStopUSec", uint64(stopLimit/time.Microsecond)),
		// A failed unit would keep its name taken.
		property("CollectMode", "inactive-or-failed"),
	}
	if _, err := conn.StartTransientUnitContext(ctx, UnitName(key), "fail", properties, result); err != nil {
		return fmt.Errorf("cannot start %s: %w", UnitName(key), err)
	}
	select {
	case r := <-result:
		if r != "done" {
			return fmt.Errorf("cannot start %s: systemd says %q", UnitName(key), r)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot start %s: %w", UnitName(key), ctx.Err())
	}
}

func property(name string, value any) dbus.Property {
	return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// Left implements Units by the unit's control group, which needs no bus.
func (s Systemd) Left(key string) (bool, error) {
	for _, root := range []string{s.Cgroups, filepath.Join(s.Cgroups, "systemd"), filepath.Join(s.Cgroups, "unified")} {
		procs, err := os.ReadFile(filepath.Join(root, "system.slice", UnitName(key), "cgroup.procs"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("cannot look for processes of job %s: %w", key, err)
		}
		if strings.TrimSpace(string(procs)) != "" {
			return true, nil
		}
	}
	return false, nil
}
