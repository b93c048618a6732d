//go:build lab && linux

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/internal/lab"
	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// proves ssh-maxstartups on a real server: nobody is lost to its throttle
func TestSSHMaxStartups(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host, "MaxStartups 3:50:5")
	key := newUser(t, host, "many", "/bin/sh")
	cfg := resolved(t, writeFile(t, "config", d.entry("node", "many", key, "UserKnownHostsFile "+knownHosts(t, d))), "node")
	dialer := &sshconn.Dialer{}
	errs := make(chan error)
	for range 20 {
		go func() {
			conn, err := dialer.Dial(t.Context(), cfg)
			if err == nil {
				_, err = conn.Run(t.Context(), reads("true"))
				_ = conn.Close()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	log := Exec(t, host.Name, "cat", d.log)
	t.Logf("20 logins, %d dropped by MaxStartups on the way", lines(log, "drop connection"))
}

// proves ssh-persourcepenalties on a real server: what it says is understood, and waited for
func TestSSHPenalties(t *testing.T) {
	hosts := eachSuite(t)
	i := slices.IndexFunc(hosts, func(h lab.Host) bool { return h.Suite == "trixie" }) // bookworm knows no penalties
	d := openDoor(t, hosts[i], "PerSourcePenalties authfail:8s min:4s")
	key := newUser(t, hosts[i], "late", "/bin/sh")
	wrong, _ := newKey(t)
	known := "UserKnownHostsFile " + knownHosts(t, d)
	_, err := reach(t, writeFile(t, "config", d.entry("node", "late", wrong, known)), "node")
	wantRemote(t, err, remote.Auth, "none of 1 keys accepted")
	begin := time.Now()
	conn, err := reach(t, writeFile(t, "config", d.entry("node", "late", key, known)), "node")
	if err != nil {
		t.Fatal(err)
	}
	says(t, conn, "late", "id", "-un")
	log := Exec(t, hosts[i].Name, "cat", d.log)
	if took := time.Since(begin); lines(log, "penalty") == 0 || took < 10*time.Second || took > time.Minute {
		t.Errorf("took %s; the server says:\n%s", took, log)
	}
}

// proves ssh-silent-apt and sftp-garbage-tail as far as the transport goes: a link that is cut in an upload leaves no file
// under the name, and nothing that the next upload goes by
func TestSSHUploadIsCut(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host)
	key := newUser(t, host, "sender", "/bin/sh")
	config := writeFile(t, "config", d.entry("node", "sender", key, "UserKnownHostsFile "+knownHosts(t, d)))
	data := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	sum := sha256.Sum256(data)
	u := remote.Upload{Source: bytes.NewReader(data), Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Path: "part.deb", Mode: 0o644}
	conn, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	cut := u
	cut.Progress = func(sent, size int64) {
		if sent > size/2 {
			_ = conn.Close()
		}
	}
	wantRemote(t, conn.Upload(t.Context(), cut), remote.Lost)
	if got := Try(t, host.Name, "test", "-e", "/home/sender/part.deb"); got.Exit == 0 {
		t.Error("half a file is under the name")
	}
	again, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Upload(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	says(t, again, u.SHA256+"  part.deb", "sha256sum", "part.deb")
}

// proves that a host that hangs costs a bounded time and does not keep the others from answering
func TestSSHHostHangs(t *testing.T) {
	host := Lab(t).Hosts()[1].Name
	if err := Lab(t).StopSSHD(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Lab(t).ContinueSSHD(context.Background(), host); err != nil {
			t.Error(err)
		}
	})
	begin := time.Now()
	got := Rollout(t, "status", "-e", "ansible_ssh_timeout=3")
	if got.Exit != 6 || !strings.Contains(flat(got), host+": unreachable: no connection within 3s") {
		t.Errorf("got %+v", got)
	}
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	for _, other := range Lab(t).Hosts() {
		if !strings.Contains(got.Stdout, other.Name) {
			t.Errorf("%s is not in the answer:\n%s", other.Name, got.Stdout)
		}
	}
}

// proves that a connection whose host hangs under a command ends in time
func TestSSHHostHangsUnderCommand(t *testing.T) {
	host := Lab(t).Hosts()[1]
	d := openDoor(t, host)
	key := newUser(t, host, "hung", "/bin/sh")
	config := writeFile(t, "config", d.entry("node", "hung", key, "UserKnownHostsFile "+knownHosts(t, d), "ServerAliveInterval 1", "ServerAliveCountMax 2"))
	conn, err := reach(t, config, "node")
	if err != nil {
		t.Fatal(err)
	}
	stop := func(signal string) {
		Exec(t, host.Name, "systemctl", "kill", "--signal="+signal, fmt.Sprintf("kibo-test-sshd-%d", d.port))
	}
	errs := make(chan error, 1)
	go func() {
		_, err := conn.Run(t.Context(), reads("sleep", "60"))
		errs <- err
	}()
	time.Sleep(300 * time.Millisecond)
	stop("STOP")
	defer stop("CONT")
	select {
	case err := <-errs:
		wantRemote(t, err, remote.Lost, "keepalives")
	case <-time.After(20 * time.Second):
		t.Error("it hangs with the host")
	}
}

// proves ssh-kh-strict-yes, ci-known-hosts-prompt: an unknown host ends in seconds, with the fingerprint; a setting that
// would skip the check is refused before anything is connected to
func TestSSHUnknownHost(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host)
	key := newUser(t, host, "new", "/bin/sh")
	fingerprint := strings.Fields(Exec(t, host.Name, "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key"))[1]
	known := writeFile(t, "known_hosts", "")
	for policy, c := range map[string]struct {
		exit, connections int
		want              string
	}{
		"yes":        {6, 1, fingerprint},
		"ask":        {6, 1, fingerprint},
		"no":         {2, 0, "StrictHostKeyChecking=no is refused"},
		"accept-new": {0, 1, fingerprint},
	} {
		t.Run(policy, func(t *testing.T) {
			inventory := writeFile(t, "inventory.yml", fmt.Sprintf("kibo_node: {hosts: {stranger: {ansible_host: %s, ansible_port: %d, ansible_user: new, "+
				"ansible_ssh_private_key_file: %s, ansible_ssh_common_args: '-o UserKnownHostsFile=%s -o StrictHostKeyChecking=%s'}}}\n",
				host.Address, d.port, key, known, policy))
			before, begin := d.connections(t), time.Now()
			got := Run(t, Program(t, "kibo-rollout"), "status", "-i", inventory)
			if policy != "accept-new" && got.Exit != c.exit || !strings.Contains(flat(got), c.want) || !strings.Contains(flat(got), "stranger") {
				t.Errorf("got %+v", got)
			}
			if n := d.connections(t) - before; n != c.connections || time.Since(begin) > 10*time.Second {
				t.Errorf("%d connections in %s, want %d", n, time.Since(begin), c.connections)
			}
			recorded := strings.Contains(string(read(t, known)), "ssh-ed25519")
			if recorded != (policy == "accept-new") {
				t.Errorf("recorded: %v", recorded)
			}
			if err := os.Truncate(known, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// proves one session a connection while the fleet lock is held on it: the other commands still run
func TestSSHOneSessionWhileHeld(t *testing.T) {
	host := Lab(t).Hosts()[0]
	d := openDoor(t, host, "MaxSessions 1")
	key := newUser(t, host, "one", "/bin/sh")
	conn, err := reach(t, writeFile(t, "config", d.entry("node", "one", key, "UserKnownHostsFile "+knownHosts(t, d))), "node")
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 10 {
		go func() {
			_, err := conn.Run(t.Context(), reads("sleep", "0.2"))
			errs <- err
		}()
	}
	var all error
	for range 10 {
		all = errors.Join(all, <-errs)
	}
	if all != nil || d.connections(t) != 1 {
		t.Errorf("%d connections, %v", d.connections(t), all)
	}
	held, err := conn.Hold(t.Context(), reads("sh", "-c", "echo held; cat"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, conn, "one", "id", "-un")
	says(t, conn, "one", "id", "-un")
	if n := d.connections(t); n != 2 {
		t.Errorf("%d connections, want a second one", n)
	}
	if err := held.Release(); err != nil {
		t.Error(err)
	}
}
