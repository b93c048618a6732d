package sshconn_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// proxyScript connects its streams to an address with what every machine with bash has.
const proxyScript = `exec 3<>/dev/tcp/$0/$1; cat <&3 & cat >&3; kill $!`

// proves that the streams of a proxy command are the connection, that the host behind it is verified, and that the
// command ends with the connection
func TestProxyCommand(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		bash = os.Args[0] // never: the machines that tests run on have git, which comes with it
	}
	s := remotetest.NewServer(t, remotetest.ServerOptions{})
	cfg := configFor(t, s)
	cfg.ProxyCommand = fmt.Sprintf("%s -c '%s' %s %d", bash, proxyScript, s.Address, s.Port)
	conn := connect(t, cfg)
	r, err := conn.Run(t.Context(), reads("echo", "through a command"))
	if err != nil || string(r.Stdout) != "through a command\n" {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	cfg.KnownHosts = nil
	_, err = sshconn.Dial(t.Context(), cfg)
	wantKind(t, err, remote.HostKey)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cfg.ProxyCommand = "echo no route to host >&2; false"
	_, err = sshconn.Dial(ctx, cfg)
	wantKind(t, err, remote.Unreachable, "the proxy command said: no route to host")
}
