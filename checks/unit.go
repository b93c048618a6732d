package checks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseUnit reads what unitScript prints.
func parseUnit(out string) (Unit, error) {
	var u Unit
	p, err := properties(out)
	if err != nil {
		return u, err
	}
	if file, bad := p["Unreadable"]; bad {
		return u, fmt.Errorf("cannot look into drop-in %s", printable(file))
	}
	u = Unit{Name: p["Id"], Load: p["LoadState"], Active: p["ActiveState"], Sub: p["SubState"], Result: p["Result"]}
	for _, name := range []string{"LoadState", "ActiveState", "SubState"} {
		if !word(p[name], 64) {
			return Unit{}, fmt.Errorf("systemd gives no proper %s: %q", name, printable(p[name]))
		}
	}
	if !word(u.Name, 256) || (u.Result != "" && !word(u.Result, 64)) {
		return Unit{}, errors.New("systemd gives no proper unit name or result")
	}
	numbers := []struct {
		name string
		into *int
	}{{"MainPID", &u.MainPID}, {"NRestarts", &u.Restarts}, {"Processes", &u.Processes}}
	for _, n := range numbers {
		if *n.into, err = strconv.Atoi(p[n.name]); err != nil || *n.into < 0 {
			return Unit{}, fmt.Errorf("not a number for %s: %q", n.name, printable(p[n.name]))
		}
	}
	if u.Since, err = unitTime(p["ActiveEnterTimestamp"]); err != nil {
		return Unit{}, err
	}
	if u.MainPID > 0 && p["Exe"] == "" {
		return Unit{}, fmt.Errorf("cannot tell which program process %d of %s runs", u.MainPID, u.Name)
	}
	u.Stale = strings.HasSuffix(p["Exe"], " (deleted)")
	_, u.ExecOverride = p["ExecOverride"]
	if f := p["FragmentPath"]; u.Load == "loaded" && (strings.HasPrefix(f, "/etc/") || strings.HasPrefix(f, "/run/")) {
		u.ExecOverride = true // a whole unit file put over the package's
	}
	return u, nil
}

// properties reads KEY=VALUE lines. A key that comes twice must not let the later one win.
func properties(out string) (map[string]string, error) {
	p := map[string]string{}
	for line := range strings.Lines(out) {
		key, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !word(key, 64) {
			return nil, fmt.Errorf("not a property: %q", printable(line))
		}
		if was, twice := p[key]; twice && was != v && key != "ExecOverride" && key != "Unreadable" {
			return nil, fmt.Errorf("property %s is there twice", key)
		}
		p[key] = v
	}
	return p, nil
}

// unitTime reads systemd's time in any of its forms. Zero if the unit was never active.
func unitTime(s string) (time.Time, error) {
	if s == "" || s == "n/a" || s == "0" {
		return time.Time{}, nil
	}
	if sec, ok := strings.CutPrefix(s, "@"); ok {
		return parseClock(sec)
	}
	for _, layout := range []string{"Mon 2006-01-02 15:04:05 UTC", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("not a time: %q", printable(s))
}

// parseVMMs reads the VMs' units, one block of properties each. Only those with a process are VMs.
func parseVMMs(out string) ([]VMM, error) {
	var vmms []VMM
	for block := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		if block == "" {
			continue
		}
		p, err := properties(block)
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(p["MainPID"])
		if err != nil || pid < 0 || !word(p["Id"], 256) {
			return nil, fmt.Errorf("not a unit: %q", printable(block))
		}
		if pid == 0 {
			continue
		}
		start := p["ExecMainStartTimestampMonotonic"]
		if n, err := strconv.ParseUint(start, 10, 64); err != nil || n == 0 {
			return nil, fmt.Errorf("unit %s has no start time: %q", p["Id"], printable(start))
		}
		vmms = append(vmms, VMM{Unit: p["Id"], PID: pid, Start: start})
	}
	slices.SortFunc(vmms, func(a, b VMM) int { return cmp.Compare(a.Unit, b.Unit) })
	for i := 1; i < len(vmms); i++ {
		if vmms[i].Unit == vmms[i-1].Unit {
			return nil, fmt.Errorf("unit %s is there twice", vmms[i].Unit)
		}
	}
	return vmms, nil
}
