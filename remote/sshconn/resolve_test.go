package sshconn_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

// resolvers are the one that asks ssh, where there is one, and the one that reads the files.
func resolvers(t *testing.T) map[string]*sshconn.Resolver {
	t.Helper()
	getenv := func(name string) string { return map[string]string{"SSH_AUTH_SOCK": "/run/agent"}[name] }
	all := map[string]*sshconn.Resolver{
		"library": {Home: "/home/me", User: "me", Getenv: getenv, System: "/no/such/file"},
	}
	if ssh, err := exec.LookPath("ssh"); err == nil {
		all["ssh -G"] = &sshconn.Resolver{SSH: ssh, Home: "/home/me", User: "me", Getenv: getenv}
	}
	return all
}

func fixture(t *testing.T, parts ...string) []string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(append([]string{"testdata"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"-F", file}
}

// proves ssh-jump-port
func TestJumpHasItsOwnSettings(t *testing.T) {
	for name, r := range resolvers(t) {
		cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a", Args: fixture(t, "ssh-jump-port", "config")})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cfg.Port != 2222 || cfg.User != "ops" || len(cfg.Jump) != 1 {
			t.Fatalf("%s: %+v", name, cfg)
		}
		hop := cfg.Jump[0]
		if hop.Address != "bastion.example.net" || hop.Port != 22 || hop.User != "jump" || hop.KeyFiles[0] != "/home/me/.ssh/jump_ed25519" {
			t.Errorf("%s: hop %+v", name, hop)
		}
	}
}

// proves sshcfg-tokens
func TestTokens(t *testing.T) {
	for name, r := range resolvers(t) {
		cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a", User: "ops", Args: fixture(t, "sshcfg-tokens", "config")})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cfg.Address != "node-a.dc1.example.net" || cfg.KeyFiles[0] != "/home/me/.ssh/id_ops_node-a.dc1.example.net" ||
			cfg.AgentSocket != "/run/agent" || cfg.ConnectTimeout != time.Minute || len(cfg.KnownHosts) < 2 ||
			!strings.HasSuffix(cfg.KnownHosts[0], "/.ssh/known_hosts.node-a") {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
}

// proves sshcfg-patterns as far as the library goes: with Match it refuses
func TestPatterns(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "sshcfg-patterns", "expected-by-openssh.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for in := bufio.NewScanner(f); in.Scan(); {
		host, user, ok := strings.Cut(in.Text(), " user=")
		if !ok {
			continue
		}
		for name, r := range resolvers(t) {
			cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: host, Args: fixture(t, "sshcfg-patterns", "config")})
			if name == "library" {
				if err == nil || !strings.Contains(err.Error(), "cannot evaluate") {
					t.Errorf("the library took a file with Match: %v", err)
				}
				continue
			}
			if err != nil || cfg.User != user {
				t.Errorf("%s %s: user %q, %v; want %q", name, host, cfg.User, err, user)
			}
		}
	}
	plain := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(plain, []byte("Host node-c\tnode-d\n  User ops\nHost \"node-e\"\n  User ops\nHost *\n  User fallback\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, user := range map[string]string{"node-c": "ops", "node-d": "ops", "node-e": "ops", "node-f": "fallback"} {
		cfg, err := resolvers(t)["library"].Resolve(t.Context(), sshconn.Options{Host: host, Args: []string{"-F", plain}})
		if err != nil || cfg.User != user {
			t.Errorf("%s: user %q, %v; want %q", host, cfg.User, err, user)
		}
	}
}

// proves sshcfg-match-final: never half a configuration
func TestMatch(t *testing.T) {
	for _, file := range []string{"config", "config.match-user"} {
		for name, r := range resolvers(t) {
			cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a", Args: fixture(t, "sshcfg-match-final", file)})
			switch {
			case name == "library" && err == nil:
				t.Errorf("%s: the library took a file with Match", file)
			case name != "library" && (err != nil || cfg.Address != "192.0.2.11"):
				t.Errorf("%s: %+v, %v", file, cfg, err)
			}
		}
	}
}

func TestOptionsWin(t *testing.T) {
	o := sshconn.Options{
		Host: "node-a", Address: "192.0.2.7", Port: 2200, User: "deploy", KeyFiles: []string{"/keys/fleet key", "/keys/other"},
		Args: []string{"-C", "-o", "StrictHostKeyChecking=accept-new", "-oUser=loses", "-o", `IdentityFile="/keys/second"`, "-4"},
	}
	for name, r := range resolvers(t) {
		cfg, err := r.Resolve(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cfg.Host != "node-a" || cfg.Address != "192.0.2.7" || cfg.Port != 2200 || cfg.User != "deploy" ||
			cfg.HostKeys != sshconn.AcceptNew || cfg.Network != "tcp4" ||
			strings.Join(cfg.KeyFiles, ",") != "/keys/fleet key,/keys/other,/keys/second" {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for name, r := range resolvers(t) {
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"-o", "StrictHostKeyChecking=no"}, "is refused: whoever answers"},
			{[]string{"-o", "KnownHostsCommand=/bin/true %H"}, "knownhostscommand"},
			{[]string{"-o", "BindAddress=127.0.0.1"}, "bindaddress"},
			{[]string{"-L", "80:x:80"}, "-L"},
			{[]string{"-A"}, "-A"},
			{[]string{"host"}, "not an option"},
			{[]string{"-o"}, "value is missing"},
			{[]string{"-o", "Port"}, "no value"},
			{[]string{"-J", "a@:22"}, ""},
			{[]string{"-J", "a:x"}, ""},
			{[]string{"-F", "/no/such/file"}, "/no/such/file"},
			{[]string{"-o", "IdentityFile=/k/%Z"}, ""},
		} {
			_, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a", Args: append([]string{}, c.args...)})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "node-a") {
				t.Errorf("%s %q: got %v, want %q", name, c.args, err, c.want)
			}
		}
		if _, err := r.Resolve(t.Context(), sshconn.Options{Host: "-oProxyCommand=id"}); err == nil {
			t.Errorf("%s: an option as an address", name)
		}
	}
}

func TestCircleOfJumps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, r := range resolvers(t) {
		_, err := r.Resolve(t.Context(), sshconn.Options{Host: "a", Args: []string{"-F", file}})
		if err == nil || !strings.Contains(err.Error(), "circle") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// proves sshcfg-include: relative to ~/.ssh, first value wins, a glob that matches nothing is fine
func TestInclude(t *testing.T) {
	home := t.TempDir()
	if err := os.CopyFS(filepath.Join(home, ".ssh"), os.DirFS(filepath.Join("testdata", "sshcfg-include"))); err != nil {
		t.Fatal(err)
	}
	r := &sshconn.Resolver{Home: home, User: "me", Getenv: func(string) string { return "" }, System: "/no/such/file"}
	for host, want := range map[string]string{"node-a": "ops@192.0.2.11", "node-b": "fallback@node-b"} {
		cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: host})
		if err != nil || cfg.User+"@"+cfg.Address != want {
			t.Errorf("%s: got %s@%s, %v; want %s", host, cfg.User, cfg.Address, err, want)
		}
	}
	for text, want := range map[string]string{
		"Host x\n  Include conf.d/10-fleet.conf\n": "inside of a Host block",
		"Include loop\n":       "more than",
		"Include none.d/*\n":   "",
		"Include with-match\n": "Match",
	} {
		for name, text := range map[string]string{"config": text, "loop": "Include loop\n", "with-match": "Match all\n"} {
			if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := &sshconn.Resolver{Home: home, User: "me", Getenv: r.Getenv, System: r.System}
		_, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// proves ci-home-mismatch: one home directory for every file, the one in passwd as with ssh; $HOME moves none of them
func TestOneHome(t *testing.T) {
	for name, r := range resolvers(t) {
		r.Getenv = func(name string) string { return map[string]string{"HOME": "/github/home"}[name] }
		o := sshconn.Options{Host: "node-a", KeyFiles: []string{"~/.ssh/fleet"}, Args: []string{"-F", "none", "-o", "UserKnownHostsFile=~/.ssh/known_hosts"}}
		cfg, err := r.Resolve(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files := append(append([]string{}, cfg.KeyFiles...), cfg.KnownHosts...)
		if cfg.KeyFiles[0] != "/home/me/.ssh/fleet" || strings.Contains(strings.Join(files, " "), "/github/home") {
			t.Errorf("%s: %q", name, files)
		}
	}
	r, err := sshconn.SystemResolver()
	if err != nil {
		t.Fatal(err)
	}
	before := r.Home
	t.Setenv("HOME", "/github/home")
	if r, err = sshconn.SystemResolver(); err != nil || r.Home != before {
		t.Errorf("home %q with another $HOME, %q before; %v", r.Home, before, err)
	}
}

// proves that addresses with a zone pass, and that what a shell would act on does not
func TestAddresses(t *testing.T) {
	for name, r := range resolvers(t) {
		args := []string{"-F", "none", "-o", "ProxyCommand=nc %h %p"}
		cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: "a", Address: "fe80::1%eth0", Args: args})
		if err != nil || cfg.Address != "fe80::1%eth0" || cfg.ProxyCommand != "nc fe80::1%eth0 22" {
			t.Errorf("%s: %+v, %v", name, cfg, err)
		}
		for _, bad := range []string{"x;id", "$(id)", "a b", "`id`", "a|b", "a\x00"} {
			if _, err := r.Resolve(t.Context(), sshconn.Options{Host: "a", Address: bad, Args: args}); err == nil {
				t.Errorf("%s: took address %q", name, bad)
			}
			if _, err := r.Resolve(t.Context(), sshconn.Options{Host: "a", User: bad, Args: args}); err == nil {
				t.Errorf("%s: took user %q", name, bad)
			}
		}
	}
}

// proves that ssh is asked once for what many hosts have in common
func TestAskedOnce(t *testing.T) {
	dir := t.TempDir()
	fake := "#!/bin/sh\necho x >>" + dir + "/asked\nfor h; do :; done\ncase $h in bastion) ;; *) echo proxyjump bastion;; esac\necho hostname $h\necho user ops\necho port 22\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(fake), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r := &sshconn.Resolver{SSH: filepath.Join(dir, "ssh"), Home: "/home/me", User: "me", Getenv: func(string) string { return "" }}
	errs := make(chan error)
	for i := range 30 {
		go func() {
			cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: string(rune('a' + i)), Address: []string{"one", "two"}[i%2]})
			if err == nil && (len(cfg.Jump) != 1 || cfg.Jump[0].Address != "bastion" || cfg.Host != string(rune('a'+i))) {
				err = errors.New("wrong: " + cfg.Host)
			}
			errs <- err
		}()
	}
	for range 30 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if n := strings.Count(string(asked), "x"); err != nil || n < 3 || n > 4 { // a question may be asked again at the very moment of its answer
		t.Errorf("ssh was asked %d times for three questions, %v", n, err)
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("-o", "ProxyCommand=ssh -W %h:%p b", "a@b:22,[::1]:2,ssh://c")
	f.Add("-oUser=x", "-p22", "1m30s")
	f.Fuzz(func(t *testing.T, one, two, three string) {
		r := &sshconn.Resolver{Home: "/home/me", Getenv: func(string) string { return "" }, System: "/no/such/file"}
		cfg, err := r.Resolve(t.Context(), sshconn.Options{Host: "node-a", Args: []string{one, two, "-J", three, "-F", "none"}})
		if err == nil && (cfg.Port < 1 || cfg.Port > 65535 || cfg.HostKeys == "") {
			t.Fatalf("%+v", cfg)
		}
	})
}
