//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Ports of the stand-in's parts, each on its host's own address.
const (
	ctrlPort = 7400
	nodePort = 7410
	e2bPort  = 7420
	gwPort   = 7430
)

// workspaces is how many Workspaces ctrl knows from the start.
const workspaces = 3

// readyLimit is how long nodes may take to be READY on a busy machine.
const readyLimit = 60 * time.Second

// install puts the packages of a host's parts on it, with their configuration and what they shall have
// running. Nothing is started but the VMMs of Instances.
func (l *Lab) install(ctx context.Context, host Host) error {
	argv := []string{"apt-get", "install", "-y", "-q", "--no-install-recommends"}
	for _, part := range host.Parts {
		paths, err := filepath.Glob(filepath.Join(l.Debs(l.state.Version), part.Package()+"_*.deb"))
		if err != nil || len(paths) != 1 {
			return fmt.Errorf("cannot find one package %s in %s: %q", part.Package(), l.Debs(l.state.Version), paths)
		}
		data, err := os.ReadFile(paths[0])
		if err != nil {
			return fmt.Errorf("cannot read package: %w", err)
		}
		deb := "/var/tmp/kibo-lab/" + filepath.Base(paths[0])
		if err := l.Put(host.Name, deb, data, 0o644); err != nil {
			return err
		}
		argv = append(argv, deb)
	}
	if _, err := l.Must(ctx, host.Name, argv...); err != nil {
		return err
	}
	if _, err := l.Must(ctx, host.Name, "rm", "-rf", "/var/tmp/kibo-lab"); err != nil {
		return err
	}
	for _, file := range l.configuration(host) {
		if err := l.Put(host.Name, file.path, []byte(file.text), file.mode); err != nil {
			return err
		}
	}
	return l.seed(ctx, host)
}

// seed gives ctrl its Workspaces and a node its Instances.
func (l *Lab) seed(ctx context.Context, host Host) error {
	if host.Has(release.Ctrl) {
		if _, err := l.Must(ctx, host.Name, "runuser", "-u", "kibotos-ctrl", "--", release.Ctrl.Binary(), "standin-seed",
			"--config", release.Ctrl.Config(), fmt.Sprintf("--workspaces=%d", workspaces)); err != nil {
			return err
		}
	}
	if host.Has(release.Node) {
		if _, err := l.Must(ctx, host.Name, release.Node.Binary(), "standin-seed",
			"--config", release.Node.Config(), fmt.Sprintf("--instances=%d", l.state.Instances)); err != nil {
			return err
		}
	}
	return nil
}

// configFile is one file of a part's configuration.
type configFile struct {
	path string
	text string
	mode fs.FileMode
}

// configuration is what a host's parts are told: where they listen, and where ctrl is.
func (l *Lab) configuration(host Host) []configFile {
	ctrl := l.CtrlAddress()
	at := func(port int) string { return fmt.Sprintf("%s:%d", host.Address, port) }
	gateway := func(port int) string {
		return fmt.Sprintf("KIBOTOS_CTRL=%s\nKIBOTOS_LISTEN=%s\n", ctrl, at(port))
	}
	var files []configFile
	for _, part := range host.Parts {
		text, mode := "", fs.FileMode(0o644)
		switch part {
		case release.Ctrl:
			text, mode = fmt.Sprintf("listen = %q\n", at(ctrlPort)), 0o640 // its group is ctrl's, by the package
			files = append(files, configFile{"/etc/kibotos/kibo.toml", fmt.Sprintf("ctrl = %q\n", ctrl), 0o644})
		case release.Node:
			text = fmt.Sprintf("name = %q\nctrl = %q\nlisten = %q\npool = %d\n", host.NodeName, ctrl, at(nodePort), l.state.Instances+8)
		case release.E2B:
			text = gateway(e2bPort)
		case release.GW:
			text = gateway(gwPort)
		}
		files = append(files, configFile{part.Config(), text, mode})
	}
	return files
}

// CtrlAddress is where ctrl's API listens.
func (l *Lab) CtrlAddress() string {
	for _, host := range l.With(release.Ctrl) {
		return fmt.Sprintf("%s:%d", host.Address, ctrlPort)
	}
	return fmt.Sprintf("%s.254:%d", l.state.Network, ctrlPort) // a fleet without ctrl: nobody answers there
}

// startParts starts parts on all fresh hosts, ctrl before everything else.
func (l *Lab) startParts(ctx context.Context, fresh []Host) error {
	for _, parts := range [][]release.Part{{release.Ctrl}, {release.Node, release.E2B, release.GW}} {
		err := l.each(ctx, fresh, func(ctx context.Context, host Host) error {
			for _, part := range parts {
				if !host.Has(part) {
					continue
				}
				if _, err := l.Must(ctx, host.Name, "systemctl", "enable", "--now", "--quiet", part.Unit()); err != nil {
					journal, _ := l.Exec(ctx, host.Name, "journalctl", "--no-pager", "-n", "15", "-u", part.Unit())
					return fmt.Errorf("%w\n%s", err, journal.Stdout)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// node is a line of `kibo node list`, as far as the lab waits for it.
type node struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Instances int    `json:"instances"`
}

// waitReady waits until ctrl says that these hosts' nodes are READY with all their Instances.
func (l *Lab) waitReady(ctx context.Context, fresh []Host) error {
	ctrls := l.With(release.Ctrl)
	if len(ctrls) == 0 {
		return nil
	}
	wanted := map[string]bool{}
	for _, host := range fresh {
		if host.Has(release.Node) {
			wanted[host.NodeName] = true
		}
	}
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		text, err := l.Must(limited, ctrls[0].Name, "kibo", "node", "list", "--output", "json")
		if err == nil && ready(text, wanted, l.state.Instances) {
			return nil
		}
		if waited := pause(limited, 100*time.Millisecond); waited != nil {
			return errors.Join(fmt.Errorf("cannot see every node READY: %w, ctrl says: %s", waited, strings.TrimSpace(text)), err)
		}
	}
}

// ready reports whether the JSON of `kibo node list` has every wanted node READY.
func ready(text string, wanted map[string]bool, instances int) bool {
	var nodes []node
	if json.Unmarshal([]byte(text), &nodes) != nil {
		return false
	}
	found := 0
	for _, one := range nodes {
		if wanted[one.Name] && one.State == "READY" && one.Instances == instances {
			found++
		}
	}
	return found == len(wanted)
}
