package sshconn_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kibotos/kibo-rollout/remote"
	"github.com/kibotos/kibo-rollout/remote/command"
	"github.com/kibotos/kibo-rollout/remote/remotetest"
	"github.com/kibotos/kibo-rollout/remote/sshconn"
)

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// fakeSudo understands the calls that are sent. It asks as sudo does: a lecture, three times, on stderr. What it
// runs sees AS, the user it was asked for. Its rules: FREE (no password), else the content of the file password.
const fakeSudo = `#!/bin/sh
d=${0%/*}; as=root; stdin=; prompt='[sudo] password: '
while :; do case $1 in
	-n) shift;; -S) stdin=1; shift;; -p) prompt=$2; shift 2;; -u) as=$2; shift 2;; --) shift; break;; *) break;;
esac; done
[ -e "$d/tty" ] && { echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1; }
if [ -e "$d/only" ] && [ "$1" != "$(cat "$d/only")" ]; then
	echo "Sorry, user tester is not allowed to execute '$*' as $as on host." >&2; exit 1
fi
if [ -e "$d/password" ] && [ -z "$SUDO_USER" ]; then
	[ -n "$stdin" ] || { echo 'sudo: a password is required' >&2; exit 1; }
	echo 'We trust you have received the usual lecture' >&2
	tries=0
	while :; do
		printf %s "$prompt" >&2
		IFS= read -r given || { echo 'sudo: no password was provided' >&2; exit 1; }
		echo "$given" >>"$d/given"
		[ "$given" = "$(cat "$d/password")" ] && break
		echo 'Sorry, try again.' >&2
		tries=$((tries+1)); [ $tries -lt 3 ] || { echo 'sudo: 3 incorrect password attempts' >&2; exit 1; }
	done
fi
SUDO_USER=tester AS=$as; export SUDO_USER AS
exec "$@"
`

// sudoServer is a host with a sudo whose behaviour the files decide.
func sudoServer(t *testing.T, files map[string]string) (*remotetest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sudo"), []byte(fakeSudo), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return remotetest.NewServer(t, remotetest.ServerOptions{Path: dir, Noise: "welcome\n"}), dir
}

func as(user string, argv ...string) command.Command {
	return command.Command{Argv: argv, As: user, Effect: command.Reads}
}

func whoami() command.Batch {
	show := func(user string) command.Command { return as(user, "sh", "-c", `cat; echo "${AS-login}"`) }
	b := command.Batch{Commands: []command.Command{show(command.Login), show(command.Root), show("kibotos-ctrl")}}
	b.Commands[1].Stdin = []byte("in,")
	return b
}

func outputs(results []command.Result) string {
	var all []string
	for _, r := range results {
		all = append(all, strings.TrimSpace(string(r.Stdout)))
	}
	return strings.Join(all, " ")
}

func TestSudoWithoutPassword(t *testing.T) {
	for name, password := range map[string]string{"none given": "", "given but not asked for": "unused"} {
		s, dir := sudoServer(t, nil)
		cfg := configFor(t, s)
		cfg.BecomePassword = []byte(password)
		got, err := connect(t, cfg).RunBatch(t.Context(), whoami())
		want := "login in,root kibotos-ctrl"
		if password != "" {
			want = "tester in,root kibotos-ctrl" // handed back to the login user by name
		}
		if err != nil || outputs(got) != want {
			t.Errorf("%s: got %q, %v", name, outputs(got), err)
		}
		for _, r := range got {
			if strings.Contains(string(r.Stdout)+string(r.Stderr), "unused") {
				t.Errorf("%s: the password reached a command", name)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "given")); err == nil {
			t.Errorf("%s: a password was sent", name)
		}
	}
}

// proves sudo-special-chars, sudo-prompt-language: the password goes to sudo alone, byte by byte
func TestSudoWithPassword(t *testing.T) {
	const password = `a b;$(x)'"\é%n `
	s, _ := sudoServer(t, map[string]string{"password": password})
	cfg := configFor(t, s)
	cfg.BecomePassword = []byte(password)
	conn := connect(t, cfg)
	for range 2 {
		got, err := conn.RunBatch(t.Context(), whoami())
		if err != nil || outputs(got) != "tester in,root kibotos-ctrl" {
			t.Fatalf("got %q, %v", outputs(got), err)
		}
	}
	h, err := conn.Hold(t.Context(), as(command.Root, "sh", "-c", `echo "held as $AS"; cat`))
	if err != nil || h.First != "held as root" {
		t.Fatalf("hold: %+v, %v", h, err)
	}
	if err := h.Release(); err != nil {
		t.Error(err)
	}
	for _, line := range s.Stats().Execs {
		if strings.Contains(line, "a b;") {
			t.Errorf("the password is in %s", line)
		}
	}
}

// proves sudo-lockout: a wrong password is given once, on one host
func TestWrongSudoPassword(t *testing.T) {
	s, dir := sudoServer(t, map[string]string{"password": "right"})
	cfg := configFor(t, s)
	cfg.BecomePassword = []byte("wrong")
	d := &sshconn.Dialer{}
	errs := make(chan error)
	for range 5 {
		go func() {
			conn, err := d.Dial(t.Context(), cfg)
			if err == nil {
				_, err = conn.Run(t.Context(), as(command.Root, "true"))
				_ = conn.Close()
			}
			errs <- err
		}()
	}
	refused, untried := 0, 0
	for range 5 {
		err := <-errs
		wantKind(t, err, remote.Become)
		if strings.Contains(err.Error(), "refuses the become password") {
			refused++
		}
		if strings.Contains(err.Error(), "not tried again") {
			untried++
		}
	}
	given, _ := os.ReadFile(filepath.Join(dir, "given"))
	if refused != 1 || untried != 4 || strings.Count(string(given), "wrong") != 1 {
		t.Errorf("refused %d, not tried %d, given %q", refused, untried, given)
	}
}

// proves sudo-tty, sudo-restricted
func TestSudoRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"password": {map[string]string{"password": "x"}, "needs a password for \"sudo -n -- id\""},
		"tty":      {map[string]string{"tty": ""}, "requiretty is set"},
		"rule":     {map[string]string{"only": "apt-get"}, "does not run \"sudo -n -- id\": Sorry, user tester is not allowed"},
	} {
		s, _ := sudoServer(t, c.files)
		b := command.Batch{Commands: []command.Command{reads("echo", "one"), as(command.Root, "id")}}
		got, err := connect(t, configFor(t, s)).RunBatch(t.Context(), b)
		wantKind(t, err, remote.Become, c.want)
		if len(got) != 2 || string(got[0].Stdout) != "one\n" {
			t.Errorf("%s: got %+v, want the results of the others too", name, got)
		}
	}
	s, _ := sudoServer(t, map[string]string{"tty": ""})
	cfg := configFor(t, s)
	cfg.BecomePassword = []byte("x")
	_, err := connect(t, cfg).Run(t.Context(), as(command.Root, "id"))
	wantKind(t, err, remote.Become, "must have a tty")
}
