package checks

import (
	"fmt"
	"strings"
	"time"

	"github.com/kibotos/kibo-rollout/internal/release"
)

// Limits of the clock rule: windows are minutes long, so seconds do not matter and minutes do.
const (
	warnSkew  = 5 * time.Second
	blockSkew = 60 * time.Second
)

func hostRules() []rule {
	return []rule{
		{
			id: "sudo", title: "commands can run as root", scope: perHost, needs: "Sudo",
			verdict: "unknown if sudo refuses or wants a password", remedy: "ssh HOST sudo -n true; give the password with -K, or allow the login user in sudoers",
			host: func(_ Input, h HostInput) []verdict {
				if ok, err := h.Facts.Sudo.Get(); err != nil || !ok {
					return unknown("whether commands can run as root", err)
				}
				return pass("commands run as root")
			},
		},
		{
			id: "clock", title: "the host's clock agrees with the operator's", of: "Z2", scope: perHost, needs: "Skew",
			verdict: "warn from 5 s, block from 60 s: windows end by the host's clock", remedy: "ssh HOST timedatectl",
			host: func(_ Input, h HostInput) []verdict { return judgeClock(h.Facts) },
		},
		{
			id: "dpkg-audit", title: "dpkg left nothing half done", scope: perHost, needs: "DpkgAudit",
			verdict: "block on anything that dpkg --audit prints", remedy: "ssh HOST sudo dpkg --configure -a",
			host: func(_ Input, h HostInput) []verdict {
				out, err := h.Facts.DpkgAudit.Get()
				switch {
				case err != nil:
					return unknown("whether dpkg left something half done", err)
				case out != "":
					return block("dpkg left packages half done: " + out)
				}
				return pass("dpkg left nothing half done")
			},
		},
		{
			id: "disk", title: "there is room for staging and installing", scope: perHost, needs: "Disk, the target's sizes",
			verdict: "block if a file system lacks the room for what will be written to it, plus 64 MiB, or has under 2000 free inodes",
			remedy:  "ssh HOST sudo apt-get clean; free space there or set kibo_stage_dir to another file system",
			host:    judgeDisk,
		},
		{
			id: "unfinished-run", title: "no other run is unfinished", scope: perHost, needs: "Runs",
			verdict: "block if the ctrl host records a run that is not the one being resumed",
			remedy:  "kibo-rollout runs list",
			host: func(in Input, h HostInput) []verdict {
				if !has(h, release.Ctrl) {
					return nil
				}
				id, err := h.Facts.Runs.Get()
				switch {
				case err != nil:
					return unknown("whether a run is unfinished", err)
				case id == "" || id == in.Run:
					return pass("no other run is unfinished")
				}
				return []verdict{{level: Block, text: "run " + id + " is unfinished", remedy: "kibo-rollout resume " + id}}
			},
		},
	}
}

func judgeClock(f Facts) []verdict {
	d, err := f.Skew.Get()
	if err != nil {
		return unknown("how far the host's clock is off", err)
	}
	size, word := d, "ahead of"
	if d < 0 {
		size, word = -d, "behind"
	}
	text := fmt.Sprintf("the host's clock is %s %s this machine's", size.Round(time.Second), word)
	switch {
	case size >= blockSkew:
		return block(text)
	case size >= warnSkew:
		return warn(text)
	}
	return pass("the host's clock agrees")
}

// Room that is left over after everything is written.
const (
	spareBytes = 64 << 20
	spareFiles = 2000
)

// judgeDisk adds up what goes to which file system: staging takes the package and its unpacked copy, installing the unpacked
// files beside those they replace.
func judgeDisk(in Input, h HostInput) []verdict {
	disks, err := h.Facts.Disk.Get()
	if err != nil {
		return unknown("free space", err)
	}
	arch, err := h.Facts.Arch.Get()
	if err != nil {
		return nil // the rule on architectures says so
	}
	var stage, install int64
	for _, p := range h.Parts {
		d, ok := in.Target.Deb(p, arch)
		if !ok {
			continue
		}
		size := d.Installed
		if size == 0 {
			size = 4 * d.Size
		}
		stage += d.Size + size
		install += size
	}
	if s, err := h.Facts.Staged.Get(); err == nil && s.Exists && s.Marker {
		stage = 0 // there already
	}
	need := map[string]int64{}
	for _, w := range []struct {
		path  string
		bytes int64
	}{{h.StageDir, stage}, {"/usr", install}, {"/var/lib/dpkg", 0}} {
		if w.path == "" {
			continue
		}
		d, ok := on(disks, w.path)
		if !ok {
			return unknown("free space for "+w.path, ErrNotGathered)
		}
		need[d.Path] += w.bytes
	}
	var out []verdict
	for _, d := range disks {
		n, used := need[d.Path]
		switch {
		case !used:
		case d.Free < n+spareBytes:
			out = append(out, block(fmt.Sprintf("%s has %s free, needed are %s", d.Path, mib(d.Free), mib(n+spareBytes)))...)
		case d.Files >= 0 && d.Files < spareFiles:
			out = append(out, block(fmt.Sprintf("%s has %d free inodes, needed are %d", d.Path, d.Files, spareFiles))...)
		}
	}
	if len(out) == 0 {
		return pass("there is room for staging and installing")
	}
	return out
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

func has(h HostInput, p release.Part) bool {
	for _, q := range h.Parts {
		if q == p {
			return true
		}
	}
	return false
}

// forHost puts the host and the part's unit and package into a remedy.
func forHost(remedy, host string, p release.Part) string {
	if host == "" {
		host = "HOST"
	}
	return strings.NewReplacer("HOST", host, "UNIT", p.Unit(), "PACKAGE", p.Package()).Replace(remedy)
}
