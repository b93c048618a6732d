//go:build linux

package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// inotifyLimit is how many inotify instances root may have on this machine. All hosts count as root here, each with
// about seven, and Debian's 128 are used up by eighteen of them: units then fail for no visible reason.
const inotifyLimit = "/proc/sys/fs/inotify/max_user_instances"

// raiseLimits makes room for the hosts of every lab. It never lowers a limit, and the new one stays until the machine
// boots: other labs may rely on it.
func raiseLimits(log func(format string, args ...any)) error {
	const wanted = 4096
	data, err := os.ReadFile(inotifyLimit)
	if err != nil {
		return fmt.Errorf("cannot read limit of inotify instances: %w", err)
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("cannot read limit of inotify instances: %w", err)
	}
	if now >= wanted {
		return nil
	}
	if err := os.WriteFile(inotifyLimit, []byte(strconv.Itoa(wanted)), 0o644); err != nil {
		return fmt.Errorf("cannot raise limit of inotify instances from %d to %d: %w", now, wanted, err)
	}
	log("raised %s from %d to %d until this machine boots again", inotifyLimit, now, wanted)
	return nil
}
