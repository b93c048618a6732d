package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

// Bus is where the system's D-Bus listens on a host.
const Bus = "/run/dbus/system_bus_socket"

// A bus that is away is asked for again ever more seldom: hosts without one exist.
const (
	busFirst = time.Second
	busLast  = 15 * time.Minute
)

// logind tells when a lock comes or goes. It only says that something changed; what is held is then asked for.
type logind struct{ socket string }

// run calls changed at every signal, and whenever the bus came or went, until ctx ends.
func (l logind) run(ctx context.Context, changed func()) {
	wait := busFirst
	for ctx.Err() == nil {
		began := time.Now()
		// Where there is no bus there is nobody who could hold a lock. One that is there and cannot be listened
		// to leaves looking again from time to time.
		if err := l.listen(ctx, changed); !errors.Is(err, fs.ErrNotExist) {
			changed()
		}
		if time.Since(began) > busLast {
			wait = busFirst
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, busLast)
	}
}

// listen is one connection to the bus, until it ends.
func (l logind) listen(ctx context.Context, changed func()) error {
	signals := make(chan *dbus.Signal, 16)
	conn, err := l.connect(ctx, signals)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	changed() // before this, anything can have happened
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-signals:
			if !ok {
				return nil
			}
			changed()
		}
	}
}

func (l logind) connect(ctx context.Context, signals chan *dbus.Signal) (*dbus.Conn, error) {
	conn, err := dbus.Dial("unix:path="+l.socket, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the system bus: %w", err)
	}
	conn.Signal(signals)
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil {
		err = conn.Hello()
	}
	// The kinds of lock are properties, told with every lock that comes or goes (Z7). A logind that starts anew
	// has a new owner of its name.
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchSender("org.freedesktop.login1"), dbus.WithMatchObjectPath("/org/freedesktop/login1"),
			dbus.WithMatchInterface("org.freedesktop.DBus.Properties"), dbus.WithMatchMember("PropertiesChanged"),
			dbus.WithMatchArg(0, "org.freedesktop.login1.Manager")},
		{dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchInterface("org.freedesktop.DBus"),
			dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, "org.freedesktop.login1")},
	} {
		if err == nil {
			err = conn.AddMatchSignalContext(ctx, match...)
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("cannot listen on the system bus: %w", err)
	}
	return conn, nil
}
