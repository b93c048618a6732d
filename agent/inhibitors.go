package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// busLimit bounds one question to logind.
const busLimit = 2 * time.Second

// errNoLogind: there is no logind here, so nobody can hold a lock at it.
var errNoLogind = errors.New("there is no logind on this host")

// systemBus is where the system's D-Bus listens.
const systemBus = "/run/dbus/system_bus_socket"

// Inhibitors asks logind for the locks that are held now. Without a logind it fails with a reason.
func Inhibitors(ctx context.Context) ([]gate.Inhibitor, error) {
	if _, err := os.Stat(systemBus); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list inhibitors: %w", errNoLogind)
	}
	ctx, cancel := context.WithTimeout(ctx, busLimit)
	defer cancel()
	conn, err := dbus.Dial("unix:path="+systemBus, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("cannot list inhibitors: %w", err)
	}
	defer func() { _ = conn.Close() }()
	// The number, not the name: a name would need a user database.
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return nil, fmt.Errorf("cannot list inhibitors: %w", err)
	}
	if err := conn.Hello(); err != nil {
		return nil, fmt.Errorf("cannot list inhibitors: %w", err)
	}
	var locks []gate.Inhibitor
	err = conn.Object("org.freedesktop.login1", "/org/freedesktop/login1").
		CallWithContext(ctx, "org.freedesktop.login1.Manager.ListInhibitors", 0).Store(&locks)
	var reply dbus.Error
	if errors.As(err, &reply) && reply.Name == "org.freedesktop.DBus.Error.ServiceUnknown" {
		return nil, fmt.Errorf("cannot list inhibitors: %w", errNoLogind)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list inhibitors: %w", err)
	}
	return locks, nil
}

// holds reports whether the lock means "do not even try" (Z7): it blocks shutdown and is not our own. Delay
// locks only ask for a moment.
func holds(i gate.Inhibitor) bool {
	return slices.Contains(strings.Split(i.What, ":"), "shutdown") &&
		(i.Mode == "block" || i.Mode == "block-weak") &&
		(i.UID != 0 || i.Who != "kibo-agent")
}

// inhibited closes an open verdict while somebody blocks shutdown. Not being able to tell closes it too.
func (j Jobs) inhibited(ctx context.Context, operation string, v gate.Verdict) gate.Verdict {
	if gate.GivesBack(operation) {
		return v
	}
	locks, err := j.Inhibitors(ctx)
	if errors.Is(err, errNoLogind) {
		return v
	}
	if err != nil {
		return gate.Closed(gate.Deny(gate.CodeInhibited, "whether somebody blocks a shutdown is unknown: %v", err))
	}
	for _, l := range locks {
		if holds(l) {
			return gate.Closed(gate.Deny(gate.CodeInhibited, "%s (pid %d, user %d) blocks shutdown: %s", printable(l.Who), l.PID, l.UID, printable(l.Why)))
		}
	}
	return v
}

// printable drops what could move a cursor from a text of unknown origin.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
