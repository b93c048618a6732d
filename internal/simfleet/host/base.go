package host

import (
	"crypto/sha256"
	"fmt"
	"io/fs"

	"github.com/kibotos/kibo-rollout/internal/simfleet/memfs"
)

// base lays down what a fresh Debian has of what anybody here asks for.
func (m *Machine) base() error {
	root := memfs.Cred{}
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{
		{"/etc/systemd/system", 0o755}, {"/etc/apt/apt.conf.d", 0o755}, {"/etc/dpkg/dpkg.cfg.d", 0o755}, {"/usr/bin", 0o755},
		{"/usr/lib/systemd/system", 0o755}, {"/var/lib/dpkg/info", 0o755}, {"/var/tmp", 0o777 | fs.ModeSticky}, {"/tmp", 0o777 | fs.ModeSticky},
		{"/root", 0o700}, {"/run/systemd/system", 0o755}, {"/proc/sys/kernel/random", 0o555}, {"/sys/fs/cgroup/system.slice", 0o755}, {"/dev", 0o755},
		{"/home/" + m.conf.Login, 0o700},
	} {
		if err := m.fs.MkdirAll(root, d.name, 0o755); err != nil {
			return err
		}
		if err := m.fs.Chmod(root, d.name, d.mode); err != nil {
			return err
		}
	}
	if err := m.fs.Chown(root, "/home/"+m.conf.Login, 1000, 1000); err != nil {
		return err
	}
	id := sha256.Sum256([]byte("machine " + m.conf.Name))
	boot := sha256.Sum256([]byte("boot " + m.conf.Name))
	code := map[string]string{"12": "bookworm", "13": "trixie"}[m.conf.Release]
	for name, text := range map[string]string{
		"/etc/hostname":                    m.conf.Name + "\n",
		"/etc/machine-id":                  fmt.Sprintf("%x\n", id[:16]),
		"/proc/sys/kernel/random/boot_id":  fmt.Sprintf("%x-%x-%x-%x-%x\n", boot[:4], boot[4:6], boot[6:8], boot[8:10], boot[10:16]),
		"/sys/fs/cgroup/cgroup.procs":      "1\n",
		"/proc/uptime":                     "3600.00 7200.00\n",
		"/etc/debian_version":              m.conf.Release + ".0\n",
		"/etc/os-release":                  osRelease(m.conf.Release, code),
		"/etc/systemd/system/.keep":        "",
		"/var/lib/dpkg/lock-frontend":      "",
		"/var/lib/dpkg/info/.keep":         "",
		"/etc/apt/apt.conf.d/01autoremove": "// simulated\n",
	} {
		if err := m.fs.WriteFile(root, name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func osRelease(release, code string) string {
	return fmt.Sprintf(`PRETTY_NAME="Debian GNU/Linux %[1]s (%[2]s)"
NAME="Debian GNU/Linux"
VERSION_ID="%[1]s"
VERSION="%[1]s (%[2]s)"
VERSION_CODENAME=%[2]s
ID=debian
`, release, code)
}
