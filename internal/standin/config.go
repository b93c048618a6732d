package standin

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/kibotos/kibo-rollout/internal/release"
)

// KiboConfig is where `kibo` finds the address of ctrl.
const KiboConfig = "/etc/kibotos/kibo.toml"

// CtrlConfig is /etc/kibotos/ctrl/config.toml.
type CtrlConfig struct {
	Listen   string `toml:"listen"`    // ADDR:PORT of the API
	StateDir string `toml:"state_dir"` // default /var/lib/kibotos/ctrl
}

// NodeConfig is /etc/kibotos/node/config.toml. Form 1 says pool, form 2 says capacity instead (K25).
type NodeConfig struct {
	Name       string `toml:"name"`
	Ctrl       string `toml:"ctrl"`        // ADDR:PORT of ctrl's API
	Listen     string `toml:"listen"`      // ADDR:PORT; data-plane processes use the address with free ports
	StateDir   string `toml:"state_dir"`   // default /var/lib/kibotos/node
	RuntimeDir string `toml:"runtime_dir"` // default /usr/lib/kibotos/node
	Pool       int    `toml:"pool"`        // form 1: how many Instances fit
	Capacity   string `toml:"capacity"`    // form 2: "ctrl"
}

func readTOML(env Env, file string, into any) (toml.MetaData, error) {
	data, err := env.ReadFile(file)
	if err != nil {
		return toml.MetaData{}, fmt.Errorf("cannot read configuration: %w", err)
	}
	meta, err := toml.Decode(string(data), into)
	if err != nil {
		return meta, fmt.Errorf("cannot parse configuration %s: %w", file, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return meta, fmt.Errorf("cannot use configuration %s: unknown key %s", file, unknown[0])
	}
	return meta, nil
}

// ReadCtrlConfig reads and checks ctrl's configuration.
func ReadCtrlConfig(env Env, file string, r Release) (CtrlConfig, error) {
	c := CtrlConfig{StateDir: stateDir(release.Ctrl)}
	if _, err := readTOML(env, file, &c); err != nil {
		return c, err
	}
	if err := address("listen", c.Listen); err != nil {
		return c, fmt.Errorf("cannot use configuration %s: %w", file, err)
	}
	return c, refused(env, file, c.StateDir, r)
}

// ReadNodeConfig reads and checks a node's configuration in the form that the version wants.
func ReadNodeConfig(env Env, file string, r Release) (NodeConfig, error) {
	c := NodeConfig{StateDir: stateDir(release.Node), RuntimeDir: RuntimeDir}
	meta, err := readTOML(env, file, &c)
	if err != nil {
		return c, err
	}
	if err := checkNodeConfig(c, meta, r.ConfigForm); err != nil {
		return c, fmt.Errorf("cannot use configuration %s: %w", file, err)
	}
	return c, refused(env, file, c.StateDir, r)
}

func checkNodeConfig(c NodeConfig, meta toml.MetaData, form int) error {
	if c.Name == "" || strings.ContainsAny(c.Name, "/ \t\n") {
		return fmt.Errorf("name %q is no node name", c.Name)
	}
	if err := address("ctrl", c.Ctrl); err != nil {
		return err
	}
	if err := address("listen", c.Listen); err != nil {
		return err
	}
	if form >= 2 {
		if meta.IsDefined("pool") {
			return errors.New(`key pool is gone in this version: ctrl sets the capacity, write capacity = "ctrl"`)
		}
		if c.Capacity != "ctrl" {
			return errors.New(`key capacity must be "ctrl"`)
		}
		return nil
	}
	if meta.IsDefined("capacity") {
		return errors.New("key capacity is not known to this version, which wants pool = NUMBER")
	}
	if c.Pool < 1 {
		return errors.New("key pool must be a number above 0")
	}
	return nil
}

func address(key, value string) error {
	host, port, err := net.SplitHostPort(value)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("key %s: %q is not ADDR:PORT", key, value)
	}
	return nil
}

func refused(env Env, file, state string, r Release) error {
	if (switches{env, state, r.Version}).on(switchConfigRefused) {
		return fmt.Errorf("cannot use configuration %s: refused by switch %s", file, switchConfigRefused)
	}
	return nil
}

func stateDir(p release.Part) string { return path.Join("/var/lib/kibotos", string(p)) }

// ParseEnvFile reads the KEY=VALUE lines of a gateway's config.env as systemd does for plain values.
func ParseEnvFile(data []byte) map[string]string {
	settings := map[string]string{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		if key, value, ok := strings.Cut(line, "="); ok {
			settings[strings.TrimSpace(key)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return settings
}
