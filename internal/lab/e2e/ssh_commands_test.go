//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"al.essio.dev/pkg/shellescape"

	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/internal/simfleet/conformance"
)

// proves that real Debian answers the commands of an upgrade as the simulated hosts do: one table for both
func TestSSHCommandsOfAnUpgrade(t *testing.T) {
	Fresh(t)
	t.Cleanup(func() { Fresh(t) })
	debs := map[string][]byte{}
	fleet := conformance.Fleet{From: "0.1.2", To: "0.1.4", Debs: debs, Instances: 2}
	for part, name := range map[release.Part]*string{release.Ctrl: &fleet.Ctrl, release.Node: &fleet.Node, release.GW: &fleet.GW} {
		host := Lab(t).With(part)[0]
		*name = host.Name
		if part == release.Node {
			fleet.NodeName = host.NodeName
		}
		found, err := filepath.Glob(filepath.Join(Lab(t).Debs(fleet.To), "kibotos-"+string(part)+"_*.deb"))
		if err != nil || len(found) != 1 {
			t.Fatalf("package of %s: %q, %v", part, found, err)
		}
		debs[string(part)] = read(t, found[0])
	}
	for _, host := range Lab(t).Hosts() {
		Copy(t, host.Name, AgentDeb(t), "/var/tmp/agent.deb")
		Exec(t, host.Name, "apt-get", "install", "-y", "/var/tmp/agent.deb")
		Exec(t, host.Name, "mkdir", "-p", "/var/lib/kibo-rollout")
	}
	fleet.Exec = func(ctx context.Context, host string, argv []string, stdin string) (conformance.Output, error) {
		var stdout, stderr bytes.Buffer
		ssh := exec.CommandContext(ctx, "ssh", "-F", Lab(t).SSHConfig(), host, shellescape.QuoteCommand(argv))
		ssh.Stdin, ssh.Stdout, ssh.Stderr = strings.NewReader(stdin), &stdout, &stderr
		err := ssh.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != 255 {
			err = nil
		}
		return conformance.Output{Stdout: stdout.String(), Stderr: stderr.String(), Exit: ssh.ProcessState.ExitCode()}, err
	}
	conformance.Run(t, fleet)
}
