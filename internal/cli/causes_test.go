package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote"
)

// TestCauses: hosts that did not answer are told by cause, not one by one, and the worst code counts.
func TestCauses(t *testing.T) {
	lost := func(name, address, text string, kind remote.Kind) state {
		h := inventory.Host{Name: name, Login: inventory.Login{Address: address}}
		return state{host: h, err: &remote.Error{Host: name, Kind: kind, Err: errors.New(text)}}
	}
	ok := state{host: inventory.Host{Name: "fine"}}
	if err := (answer{hosts: []state{ok}}).unreachable(); err != nil {
		t.Errorf("nothing is wrong: %v", err)
	}
	one := (answer{hosts: []state{ok, lost("a", "10.0.0.1", "no route", remote.Unreachable)}}).unreachable()
	if one == nil || codeOf(one) != exitUnreachable || !strings.Contains(one.Error(), "host a: unreachable: no route; nothing was changed") {
		t.Errorf("one host: %v", one)
	}
	many := (answer{hosts: []state{
		lost("a", "10.0.0.1", "dial 10.0.0.1:22: refused", remote.Unreachable), ok, lost("b", "10.0.0.2", "dial 10.0.0.2:22: refused", remote.Unreachable),
		lost("c", "10.0.0.3", "login refused", remote.Auth),
	}}).unreachable()
	for _, text := range []string{"3 of 4 hosts", "  a, b: unreachable: dial HOST:22: refused", "  c: auth: login refused"} {
		if many == nil || !strings.Contains(many.Error(), text) {
			t.Errorf("it does not say %q: %v", text, many)
		}
	}
}
