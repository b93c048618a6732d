package agent

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kibotos/kibo-rollout/agent/gate"
)

// Where the package puts the two hooks. They stay when the package is removed and go when it is purged.
const (
	AptHookPath  = "/etc/kibo-agent/apt-hook"
	DpkgHookPath = "/etc/kibo-agent/dpkg-hook"
	// AptHookKey is the first word of the line in apt's configuration, under which apt looks up the protocol
	// version. Its odd spelling makes it ours alone while the program always exists.
	AptHookKey = "/usr/bin/./test"
)

// Layers tests whether the two hooks are really in effect: a file in the right place is not enough, since apt
// skips names it does not like and a later file can clear the list.
type Layers struct {
	Root    string                 // "/"
	AptDump func() (string, error) // `apt-config dump`
}

// AptDump asks apt for its whole configuration.
func AptDump() (string, error) { return tool("/usr/bin/apt-config", "dump") }

// Test returns one Layer each for apt and dpkg.
func (l Layers) Test() []gate.Layer { return []gate.Layer{l.apt(), l.dpkg()} }

func (l Layers) apt() gate.Layer {
	inactive := func(reason string) gate.Layer { return gate.Layer{Name: "apt", Reason: reason} }
	dump, err := l.AptDump()
	if err != nil {
		return inactive(err.Error())
	}
	hook, version := false, ""
	for line := range strings.Lines(dump) {
		key, value, ok := aptLine(line)
		switch {
		case !ok:
		case strings.EqualFold(key, "DPkg::Pre-Install-Pkgs::") && strings.HasPrefix(value, AptHookKey+" ") && strings.Contains(value, AptHookPath):
			hook = true
		case strings.EqualFold(key, "DPkg::Tools::Options::"+AptHookKey+"::Version"):
			version = value
		}
	}
	switch {
	case !hook:
		return inactive("apt does not have " + AptHookPath + " in its list DPkg::Pre-Install-Pkgs")
	case version != "3":
		return inactive("apt is not set to speak protocol 3 to " + AptHookPath)
	}
	if reason := l.script(AptHookPath); reason != "" {
		return inactive(reason)
	}
	return gate.Layer{Name: "apt", Active: true}
}

// aptLine splits a line `key "value";` of apt's dump.
func aptLine(line string) (key, value string, ok bool) {
	key, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	rest, ok1 := strings.CutPrefix(rest, `"`)
	value, ok2 := strings.CutSuffix(rest, `";`)
	return key, value, ok && ok1 && ok2
}

func (l Layers) dpkg() gate.Layer {
	inactive := func(reason string) gate.Layer { return gate.Layer{Name: "dpkg", Reason: reason} }
	dir := filepath.Join(l.Root, "etc/dpkg/dpkg.cfg.d")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return inactive(err.Error())
	}
	// dpkg skips every name with another character in it, such as the copies that package managers leave.
	name := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	for _, e := range entries {
		if !name.MatchString(e.Name()) || !hasPreInvoke(filepath.Join(dir, e.Name())) {
			continue
		}
		if reason := l.script(DpkgHookPath); reason != "" {
			return inactive(reason)
		}
		return gate.Layer{Name: "dpkg", Active: true}
	}
	return inactive("no file that dpkg reads in " + dir + " has " + DpkgHookPath + " as pre-invoke")
}

func hasPreInvoke(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		if strings.HasPrefix(line, "pre-invoke") && strings.Contains(line, DpkgHookPath) {
			return true
		}
	}
	return false
}

// script says what is wrong with a hook's script or the program it calls; "" if nothing is.
func (l Layers) script(path string) string {
	for _, p := range []string{path, "/usr/bin/kibo-agent"} {
		st, err := os.Stat(filepath.Join(l.Root, p))
		if err != nil {
			return err.Error()
		}
		if !st.Mode().IsRegular() || st.Mode()&0o100 == 0 {
			return p + " is not executable"
		}
	}
	return ""
}
