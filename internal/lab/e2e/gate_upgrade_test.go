//go:build lab && linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a package repository on the host from what is in $1, with a newer hello-lab beside the node's
// package, and makes apt use it. $2 is its address.
const repository = `set -e
mkdir -p "$1" /root/hello/DEBIAN; cd "$1"
cp ` + nodeDebAt + ` node.deb
printf 'Package: hello-lab\nVersion: 2.0\nArchitecture: all\nMaintainer: lab <lab@example.invalid>\nDescription: newer\n' >/root/hello/DEBIAN/control
dpkg-deb --root-owner-group --build /root/hello hello.deb >/dev/null
for deb in *.deb; do
	dpkg-deb --field $deb
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $deb $(stat -c %s $deb) $(sha256sum $deb | cut -d' ' -f1)
done >Packages
echo "deb [trusted=yes] $2 ./" >/etc/apt/sources.list.d/lab.list
apt-get update`

const (
	repoDir      = "/var/lib/gate-repo" // the repository on a host
	oldNodeDebAt = "/var/tmp/gate-old-node.deb"
)

// TestGateUpgrade proves Z1 and Z8 for general upgrades, as unattended-upgrades makes them: packages of Kibotos
// stay as they are while all others get their updates, from a local repository and from one on the network.
func TestGateUpgrade(t *testing.T) {
	for _, host := range gated(t) {
		oldNode(t, host.Name)
		files := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(shared.dir, "hosts", host.Name, "root", repoDir))))
		defer files.Close()
		for kind, address := range map[string]string{"file": "file:" + repoDir, "http": files.URL} {
			t.Run(host.Suite+"/"+kind, func(t *testing.T) {
				Exec(t, host.Name, "sh", "-c", repository, "repo", repoDir, address)
				keptBack(t, host.Name)
			})
		}
		t.Run(host.Suite+"/without the pin", func(t *testing.T) { vetoed(t, host.Name) })
	}
}

// oldNode puts the node's first package on the host.
func oldNode(t *testing.T, host string) {
	t.Helper()
	debs, err := filepath.Glob(filepath.Join(Lab(t).Debs("0.1.2"), "kibotos-node*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("the node's first package: %q %v", debs, err)
	}
	Copy(t, host, debs[0], oldNodeDebAt)
}

func version(t *testing.T, host, name string) string {
	t.Helper()
	return Exec(t, host, "dpkg-query", "-W", "-f", "${Version}", name)
}

// older puts the older packages there again.
func older(t *testing.T, host string) {
	t.Helper()
	Exec(t, host, "dpkg", "-i", "--force-downgrade", helloDebAt)
}

func keptBack(t *testing.T, host string) {
	node := version(t, host, "kibotos-node")
	upgrade := []string{"apt-get", "-y", "-o", "Dpkg::Options::=--force-confold"}
	for _, how := range []string{"upgrade", "dist-upgrade"} {
		older(t, host)
		Exec(t, host, append(upgrade, how)...)
		if got := version(t, host, "hello-lab"); got != "2.0" {
			t.Errorf("%s: hello-lab is %s", how, got)
		}
	}
	// A window is no order to upgrade: what is not named stays.
	Exec(t, host, "kibo-agent", "allow", "--for", "5m")
	Exec(t, host, append(upgrade, "dist-upgrade")...)
	if got := version(t, host, "kibotos-node"); got != node {
		t.Errorf("kibotos-node went from %s to %s", node, got)
	}
	// Named with its version it can be had, by the gate.
	Exec(t, host, "kibo-agent", "close")
	install := append(upgrade, "install", "kibotos-node=0.1.4")
	if got := Try(t, host, install...); got.Exit != 100 || !strings.Contains(got.Stderr, "refused: install kibotos-node 0.1.4") {
		t.Errorf("without a window: %+v", got)
	}
	Exec(t, host, "kibo-agent", "allow", "--for", "5m", "--once", "--package", "kibotos-node=0.1.4")
	Exec(t, host, install...)
	if got := version(t, host, "kibotos-node"); got != "0.1.4" {
		t.Errorf("kibotos-node is %s", got)
	}
	back := fmt.Sprintf("kibo-agent allow --for 1m && dpkg -i --force-downgrade %s && kibo-agent close", oldNodeDebAt)
	Exec(t, host, "sh", "-c", back)
}

// vetoed: a site that takes the pin away still has the gate, which apt can only obey for all packages at once.
func vetoed(t *testing.T, host string) {
	older(t, host)
	node := version(t, host, "kibotos-node")
	Exec(t, host, "mv", "/etc/apt/preferences.d/kibo-agent", "/root/pin")
	got := Try(t, host, "apt-get", "-y", "dist-upgrade")
	if got.Exit != 100 || !strings.Contains(got.Stderr, "refused: install kibotos-node 0.1.4") {
		t.Errorf("%+v", got)
	}
	if hello := version(t, host, "hello-lab"); hello != "1.0" || version(t, host, "kibotos-node") != node {
		t.Errorf("something changed: hello-lab %s", hello)
	}
	// The way on that the refusal names.
	Exec(t, host, "apt-mark", "hold", "kibotos-node")
	Exec(t, host, "apt-get", "-y", "dist-upgrade")
	if hello := version(t, host, "hello-lab"); hello != "2.0" || version(t, host, "kibotos-node") != node {
		t.Errorf("hello-lab is %s", hello)
	}
	Exec(t, host, "apt-mark", "unhold", "kibotos-node")
	Exec(t, host, "mv", "/root/pin", "/etc/apt/preferences.d/kibo-agent")
}
