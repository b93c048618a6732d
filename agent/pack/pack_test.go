package pack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pault.ag/go/debian/deb"
)

func build(t *testing.T) []byte {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kibo-agent")
	if err := os.WriteFile(binary, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(&out, binary, "0.2.0-rc.1", "amd64"); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestPackage(t *testing.T) {
	data := build(t)
	if !bytes.Equal(data, build(t)) {
		t.Error("the same input gave other bytes")
	}
	d, err := deb.Load(bytes.NewReader(data), "kibo-agent.deb")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Control.Package + " " + d.Control.Version.String() + " " + d.Control.Architecture.String(); got != "kibo-agent 0.2.0~rc.1 amd64" {
		t.Errorf("control: %s", got)
	}
	var names []string
	for {
		h, err := d.Data.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s: %d:%d %o", h.Name, h.Uid, h.Gid, h.Mode)
		}
		names = append(names, fmt.Sprintf("%s %o", strings.TrimPrefix(h.Name, "."), h.Mode&0o777))
	}
	for _, want := range []string{"/usr/bin/kibo-agent 755", "/etc/kibo-agent/apt-hook 755", "/etc/kibo-agent/dpkg-hook 755",
		"/etc/apt/apt.conf.d/90kibo-agent 644", "/etc/dpkg/dpkg.cfg.d/kibo-agent 644",
		"/etc/apt/preferences.d/kibo-agent 644", "/var/lib/kibo-agent/ 755",
		"/usr/lib/systemd/system/kibo-agent.service 644", "/usr/lib/systemd/system/kibo-agent-fleetlock.service 644", "/usr/lib/tmpfiles.d/kibo-agent.conf 644"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s in %q", want, names)
		}
	}
	if name, err := Name("0.2.0-rc.1", "arm64"); err != nil || name != "kibo-agent_0.2.0~rc.1_arm64.deb" {
		t.Errorf("%s %v", name, err)
	}
}

// script writes one of the hooks so that it finds the given agent, "" for none, and returns its path.
func script(t *testing.T, name, agent string) string {
	t.Helper()
	text, err := embedded.ReadFile("files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "kibo-agent")
	if agent != "" {
		if err := os.WriteFile(program, []byte(agent), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("/usr/bin/kibo-agent"), []byte(program)), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// proves Z5: without a working agent, the hook goes on refusing kibotos packages and nothing else.
func TestAptHookScript(t *testing.T) {
	const head = "VERSION 3\nAPT::Architecture=amd64\n\n"
	const upgrade = head + "kibotos-node 1 all none < 2 all none /n.deb\n"
	const unrelated = head + "hello 1 all none < 2 all none /n.deb\n"
	for name, tc := range map[string]struct {
		agent, in string
		exit      int
		says      string
	}{
		"no agent":                 {"", upgrade, 1, "not installed"},
		"no agent, unrelated":      {"", unrelated, 0, ""},
		"no agent, configure":      {"", head + "kibotos-node 1 all none < 2 all none **CONFIGURE**\n", 0, ""},
		"no agent, remove":         {"", head + "kibotos-node 1 all none > - - none **REMOVE**\n", 1, "REMOVE"},
		"no agent, protocol 1":     {"", "/x/kibotos-node_2_all.deb\n", 1, "not installed"},
		"no agent, the agent":      {"", head + "kibo-agent - - none < 2 all none /n.deb\n", 0, ""},
		"no agent, nothing":        {"", "", 0, ""},
		"broken agent":             {"#!/bin/sh\nexit 2\n", upgrade, 1, "does not work"},
		"broken agent, unrelated":  {"#!/bin/sh\nexit 2\n", unrelated, 0, ""},
		"killed agent, unrelated":  {"#!/bin/sh\nkill -9 $$\n", unrelated, 0, ""},
		"agent says yes":           {"#!/bin/sh\ncat >/dev/null; exit 0\n", upgrade, 0, ""},
		"agent says no":            {"#!/bin/sh\ncat >&2; exit 1\n", upgrade, 1, "kibotos-node 1 all none < 2"},
		"agent that does not read": {"#!/bin/sh\nexit 0\n", upgrade, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", script(t, "apt-hook", tc.agent))
			cmd.Stdin = strings.NewReader(tc.in)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tc.exit || !strings.Contains(string(out), tc.says) {
				t.Errorf("exit %d, %s", got, out)
			}
		})
	}
}

// proves Z5: the same for dpkg's hook, whose parent stands for dpkg here and has its command line.
func TestDpkgHookScript(t *testing.T) {
	for name, tc := range map[string]struct {
		agent, action string
		argv          []string
		exit          int
	}{
		"no agent":                {"", "remove", []string{"-r", "kibotos-node:all"}, 1},
		"no agent, unrelated":     {"", "remove", []string{"-r", "hello"}, 0},
		"no agent, by file name":  {"", "install", []string{"-i", "kibotos-node_1_all.deb"}, 1},
		"no agent, configure":     {"", "configure", []string{"--configure", "kibotos-node"}, 0},
		"broken agent":            {"#!/bin/sh\nexit 2\n", "remove", []string{"-r", "kibotos-node"}, 1},
		"broken agent, unrelated": {"#!/bin/sh\nexit 2\n", "remove", []string{"-r", "hello"}, 0},
		"agent says yes":          {"#!/bin/sh\nexit 0\n", "remove", []string{"-r", "kibotos-node"}, 0},
		"agent says no":           {"#!/bin/sh\nexit 1\n", "remove", []string{"-r", "hello"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			hook := script(t, "dpkg-hook", tc.agent)
			// The trailing command keeps the shell from being replaced by the hook.
			args := append([]string{"-c", "/bin/sh " + hook + "; exit $?", "dpkg"}, tc.argv...)
			cmd := exec.Command("/bin/sh", args...)
			cmd.Env = append(os.Environ(), "DPKG_HOOK_ACTION="+tc.action)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tc.exit {
				t.Errorf("exit %d, want %d: %s", got, tc.exit, out)
			}
		})
	}
}
