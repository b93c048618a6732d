//go:build lab && linux

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/kibotos/kibo-rollout/checks"
	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/internal/release"
	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote"
)

// Of the fan-out: how many addresses, how many an sshd listens on (it takes no more than 16), and how much slower the
// program may be than the library it uses, doing the same thing.
const (
	fanAddresses = 100
	fanPerDoor   = 15 // besides the host's own
	fanRounds    = 3
	fanRatio     = 1.3
)

// fan is a host under many addresses.
type fan struct {
	doors     []door
	addresses []string
	port      int
	key       string
}

// openFan makes sshds on a host that listen on many addresses.
func openFan(t *testing.T, host lab.Host) fan {
	t.Helper()
	f := fan{port: freePort(t, "127.0.60.1")}
	for i := range fanAddresses {
		f.addresses = append(f.addresses, "127.0.60."+strconv.Itoa(i+1))
	}
	var public ssh.PublicKey
	f.key, public = newKey(t)
	allow(t, host, lab.User, public)
	for some := range slices.Chunk(f.addresses, fanPerDoor) {
		config := []string{"MaxStartups 200"}
		for _, address := range some {
			config = append(config, fmt.Sprintf("ListenAddress %s:%d", address, f.port))
		}
		f.doors = append(f.doors, openDoor(t, host, config...))
	}
	return f
}

// counts are the connections and the started commands that the servers have seen.
func (f fan) counts(t *testing.T) (connections, execs, others int) {
	t.Helper()
	for _, d := range f.doors {
		log := Exec(t, d.host.Name, "cat", d.log)
		connections += lines(log, "Connection from ")
		execs += lines(log, "Starting session: command")
		others += lines(log, "Starting session: ") - lines(log, "Starting session: command")
	}
	return connections, execs, others
}

// inventory is one node under each address.
func (f fan) inventory(t *testing.T, hostKey string) string {
	t.Helper()
	var known, text strings.Builder
	for _, address := range f.addresses {
		fmt.Fprintf(&known, "[%s]:%d %s\n", address, f.port, hostKey)
	}
	fmt.Fprintf(&text, "kibo_node:\n  vars:\n    ansible_user: %s\n    ansible_port: %d\n    ansible_ssh_private_key_file: %s\n"+
		"    ansible_ssh_common_args: -o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes\n  hosts:\n",
		lab.User, f.port, f.key, writeFile(t, "known_hosts", known.String()))
	for i, address := range f.addresses {
		fmt.Fprintf(&text, "    fan-%03d: {ansible_host: %s}\n", i+1, address)
	}
	return writeFile(t, "inventory.yml", text.String())
}

// bare does with the library alone what the program does: connect to every address, and run one script there.
func (f fan) bare(t *testing.T, hostKey ssh.PublicKey, script []byte) time.Duration {
	t.Helper()
	config := &ssh.ClientConfig{
		User: lab.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signerOf(t, f.key))},
		HostKeyCallback: ssh.FixedHostKey(hostKey), HostKeyAlgorithms: []string{hostKey.Type()},
	}
	begin := time.Now()
	var group errgroup.Group
	group.SetLimit(remote.DefaultForks)
	for _, address := range f.addresses {
		group.Go(func() error {
			client, err := ssh.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(f.port)), config)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			session, err := client.NewSession()
			if err != nil {
				return err
			}
			session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(script), &bytes.Buffer{}, &bytes.Buffer{}
			return session.Run("/bin/sh -s")
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// proves that the facts of 100 hosts cost one connection and one exec a host, counted by their servers, and little
// more time than the library needs for the same
func TestFanout(t *testing.T) {
	host := Lab(t).With(release.Node)[0]
	f := openFan(t, host)
	line := hostKey(t, host)
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	file := f.inventory(t, line)
	inv, err := inventory.Load([]string{file}, inventory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := inv.Hosts()[0]
	script := checks.FactsBatch(checks.Want{
		Host: one.Name, Parts: one.Parts, VMMUnits: one.Kibo.VMMUnits, StateDir: one.Kibo.StateDir, Commands: one.Kibo.Commands, Now: time.Now,
	}).Script("kibofanoutkibofanoutkibofanout")
	var ours, floor, least []time.Duration
	for round := range fanRounds {
		floor = append(floor, f.bare(t, key, script))
		before, execsBefore, _ := f.counts(t)
		begin := time.Now()
		got := Run(t, Program(t, "kibo-rollout"), "status", "-i", file)
		ours = append(ours, time.Since(begin))
		if got.Exit != 0 || strings.Count(got.Stdout, "fan-") < fanAddresses {
			t.Fatalf("got %+v", got)
		}
		connections, execs, others := f.counts(t)
		if connections -= before; connections != fanAddresses {
			t.Errorf("round %d: %d connections to %d hosts", round, connections, fanAddresses)
		}
		if execs -= execsBefore; execs != fanAddresses || others != 0 {
			t.Errorf("round %d: %d execs and %d other sessions on %d hosts", round, execs, others, fanAddresses)
		}
		least = append(least, f.bare(t, key, []byte("true\n")))
	}
	ratio := float64(median(ours)) / float64(median(floor))
	t.Logf("facts of %d hosts: %s; connect and the same script with x/crypto/ssh alone: %s; ratio %.2f (with a script that does nothing: %s)",
		fanAddresses, median(ours), median(floor), ratio, median(least))
	if ratio > fanRatio {
		t.Errorf("ratio %.2f, want at most %.1f", ratio, fanRatio)
	}
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2].Round(time.Millisecond)
}
