package fleetlock

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// ConfigPath is the server's configuration on a host. Without it there is no server.
const ConfigPath = "/etc/kibo-agent/fleetlock.conf"

// Config is the server's configuration.
type Config struct {
	Listen string // a loopback address with a port
	Group  string // the only group that is answered; "": any
}

// ParseConfig reads lines of the form `key = value`; # begins a comment line.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok:
			return Config{}, fmt.Errorf("line %d is not key = value", n)
		case seen[key]:
			return Config{}, fmt.Errorf("line %d has %q for the second time", n, key)
		case key == "listen":
			c.Listen = value
		case key == "group":
			c.Group = value
		default:
			return Config{}, fmt.Errorf("line %d has the unknown key %q; known are listen and group", n, key)
		}
		seen[key] = true
	}
	if err := lines.Err(); err != nil {
		return Config{}, fmt.Errorf("cannot read the configuration: %w", err)
	}
	return c, c.Check()
}

// Check reports what is wrong with the configuration, or nil.
func (c Config) Check() error {
	if c.Group != "" {
		if err := (Identity{ID: "x", Group: c.Group}).Check(); err != nil {
			return err
		}
	}
	return CheckListen(c.Listen)
}
