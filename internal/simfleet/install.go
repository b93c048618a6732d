package simfleet

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/standin"
)

// installPart installs, configures, fills and starts one part of Kibotos on a machine.
func (f *Fleet) installPart(m *Machine, p release.Part) error {
	ctx := context.Background()
	deb, err := f.debs.part(m.Spec.Version, p)
	if err != nil {
		return err
	}
	if err := m.InstallDeb(ctx, deb); err != nil {
		return err
	}
	ctrl, own := f.ctrlAddress(), address(m)
	config := map[release.Part]string{
		release.Ctrl: fmt.Sprintf("listen = %q\nstate_dir = \"/var/lib/kibotos/ctrl\"\n", ctrl),
		release.E2B:  "KIBOTOS_CTRL=" + ctrl + "\nKIBOTOS_LISTEN=" + net.JoinHostPort(own, "7420") + "\n",
		release.GW:   "KIBOTOS_CTRL=" + ctrl + "\nKIBOTOS_LISTEN=" + net.JoinHostPort(own, "7430") + "\n",
		release.Node: fmt.Sprintf("name = %q\nctrl = %q\nlisten = %q\n%s\n", m.Spec.NodeName, ctrl, net.JoinHostPort(own, "7410"), capacity(m.Spec.Version)),
	}
	if err := m.Place(p.Config(), config[p]); err != nil {
		return err
	}
	switch p {
	case release.Ctrl:
		if err := m.Place(standin.KiboConfig, fmt.Sprintf("ctrl = %q\n", ctrl)); err != nil {
			return err
		}
		err = m.must(ctx, "kibotos-ctrl", p.Binary(), "standin-seed", "--workspaces", strconv.Itoa(min(f.spec.InstancesPerNode, 1)*3))
	case release.Node:
		err = m.must(ctx, "root", p.Binary(), "standin-seed", "--instances", strconv.Itoa(f.spec.InstancesPerNode))
	case release.E2B, release.GW:
	}
	if err != nil {
		return err
	}
	if err := m.StartUnit(ctx, p.Unit()); err != nil {
		return fmt.Errorf("cannot start %s on %s: %w", p.Unit(), m.Name(), err)
	}
	return nil
}

// capacity is the line that tells the two forms of a node's configuration apart (K25).
func capacity(key string) string {
	list, _ := standin.Find(key)
	for _, r := range list {
		if r.Part == release.Node && r.ConfigForm >= 2 {
			return `capacity = "ctrl"`
		}
	}
	return "pool = 8"
}

func (m *Machine) must(ctx context.Context, user string, words ...string) error {
	out, err := m.Run(ctx, user, words...)
	if err == nil && out.Exit != 0 {
		err = fmt.Errorf("exit status %d: %s%s", out.Exit, out.Stdout, out.Stderr)
	}
	if err != nil {
		return fmt.Errorf("cannot run %v on %s: %w", words, m.Name(), err)
	}
	return nil
}
