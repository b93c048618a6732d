package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/inventory"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

func routesFor(t *testing.T, f *fleetFlags, config string, hosts ...inventory.Host) *routes {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &sshconn.Resolver{Home: home, User: "me", Getenv: func(string) string { return "" }, System: "/no/such/file"}
	return newRoutes(r, f, hosts, nil, []byte("from the file"))
}

// proves that what cannot be honoured is a usage error that names the hosts, found before anything is connected to
func TestRefusedBeforeConnecting(t *testing.T) {
	no, yes := false, true
	args := func(words ...string) inventory.Login { return inventory.Login{CommonArgs: words} }
	for name, c := range map[string]struct {
		login inventory.Login
		want  string
	}{
		"unverified":     {args("-o", "StrictHostKeyChecking=no"), "StrictHostKeyChecking=no is refused"},
		"no record":      {args("-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=/dev/null"), "every host would be new"},
		"unknown word":   {args("-L", "80:x:80"), "cannot honour ssh argument -L"},
		"unknown token":  {inventory.Login{KeyFiles: []string{"/k/%Z"}}, "%Z"},
		"metacharacters": {inventory.Login{Address: "x;reboot"}, "bad address"},
		"user":           {inventory.Login{User: "$(id)"}, "bad user name"},
		"password":       {inventory.Login{Password: "x"}, "ansible_password"},
		"host key check": {inventory.Login{HostKeyCheck: &no}, "always verified"},
		"no become":      {inventory.Login{Become: &no}, "ansible_become is false"},
		"two lines":      {inventory.Login{BecomePass: "a\nb"}, "more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			good := inventory.Host{Name: "good", Login: inventory.Login{HostKeyCheck: &yes, Become: &yes}}
			hosts := []inventory.Host{good}
			for _, n := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"} {
				hosts = append(hosts, inventory.Host{Name: n, Login: c.login})
			}
			r := routesFor(t, &fleetFlags{}, "", hosts...)
			err := r.resolve(t.Context(), hosts)
			if err == nil || codeOf(err) != exitUsage {
				t.Fatalf("got %v, exit %d; want exit %d", err, codeOf(err), exitUsage)
			}
			text := err.Error()
			if !strings.Contains(text, c.want) || strings.Contains(text, "good") {
				t.Errorf("got %q", text)
			}
			if !strings.Contains(text, "n1") || !strings.Contains(text, "2 more") && strings.Count(text, "\n") != 6 {
				t.Errorf("hosts with one cause are not named together, or apart: %q", text)
			}
			if strings.Contains(text, "a\nb") {
				t.Errorf("the password is in %q", text)
			}
			if err := r.resolve(t.Context(), hosts[:1]); err != nil {
				t.Errorf("hosts that were not selected are in the way: %v", err)
			}
		})
	}
}

// proves that all of a login is honoured: every key, retries, the time limit; the inventory before the flags
func TestLoginIsHonoured(t *testing.T) {
	f := &fleetFlags{user: "flag", key: "/keys/flag"}
	config := "Host far\n  ProxyJump bastion:2022\nHost bastion\n  HostName 192.0.2.1\n"
	full := inventory.Host{Name: "full", Login: inventory.Login{
		Address: "fe80::1%eth0", Port: 2200, User: "ops", KeyFiles: []string{"/keys/one", "/keys/two"},
		Timeout: 7 * time.Second, Retries: 3, BecomePass: "own",
	}}
	far := inventory.Host{Name: "far"}
	r := routesFor(t, f, config, full, far)
	if err := r.resolve(t.Context(), []inventory.Host{full, far}); err != nil {
		t.Fatal(err)
	}
	cfg, err := r.config(t.Context(), "full")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Address != "fe80::1%eth0" || cfg.Port != 2200 || cfg.User != "ops" || cfg.Retries != 3 || cfg.ConnectTimeout != 7*time.Second ||
		!slices.Equal(cfg.KeyFiles[:2], []string{"/keys/one", "/keys/two"}) || string(cfg.BecomePassword) != "own" {
		t.Errorf("got %+v", cfg)
	}
	cfg, err = r.config(t.Context(), "far")
	if err != nil || cfg.User != "flag" || cfg.KeyFiles[0] != "/keys/flag" || string(cfg.BecomePassword) != "from the file" {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if via := r.via("far"); via != "192.0.2.1:2022" || r.via("full") != "" {
		t.Errorf("via %q and %q", via, r.via("full"))
	}
	if _, err := r.config(t.Context(), "other"); err == nil {
		t.Error("a host that is not in the inventory")
	}
}
