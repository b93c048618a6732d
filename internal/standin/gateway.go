package standin

import (
	"errors"
	"fmt"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Gateway is a running E2B or Exposure gateway. It keeps no state.
type Gateway struct {
	// Listen is the address that it serves on: /health for both, a zone for the Exposure gateway.
	Listen string

	env     Env
	release Release
	ctrl    string
}

// GatewayStart starts a gateway from its environment settings KIBOTOS_CTRL and KIBOTOS_LISTEN. It starts without
// ctrl too; Health tells whether it can serve.
func GatewayStart(env Env, p release.Part, settings map[string]string) (*Gateway, error) {
	if !p.Gateway() {
		return nil, fmt.Errorf("cannot start gateway: %q is none", p)
	}
	r, err := ReadRelease(env, p)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"KIBOTOS_CTRL", "KIBOTOS_LISTEN"} {
		if err := address(key, settings[key]); err != nil {
			return nil, fmt.Errorf("cannot start gateway: %w", err)
		}
	}
	state := settings["KIBOTOS_STATE_DIR"]
	if state == "" {
		state = stateDir(p)
	}
	if err := startSwitches(env, state, r); err != nil {
		return nil, err
	}
	return &Gateway{Listen: settings["KIBOTOS_LISTEN"], env: env, release: r, ctrl: settings["KIBOTOS_CTRL"]}, nil
}

// Health tells why the gateway cannot serve, or nil: ctrl has to answer and to know the interface (K56).
func (g *Gateway) Health() error {
	resp, err := g.env.CallCtrl(g.ctrl, Request{Op: OpResolve, Version: g.release.Version, Level: g.release.Level})
	if err != nil {
		return fmt.Errorf("cannot reach ctrl at %s: %w", g.ctrl, err)
	}
	if resp.Error != "" {
		return errors.New(resp.Error)
	}
	return nil
}

// Stop ends the gateway.
func (g *Gateway) Stop() error { return nil }
