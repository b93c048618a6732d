package standin

import (
	"path"
	"strconv"
	"strings"
	"time"
)

// Names of the switches; the package documentation says what each does.
const (
	switchDatabaseDirty    = "database-dirty"
	switchDatabaseNewer    = "database-newer"
	switchDatabaseOlder    = "database-older"
	switchPKIBroken        = "pki-broken"
	switchTemplatesBroken  = "templates-broken"
	switchLaunchUnreadable = "launch-unreadable"
	switchUnfinished       = "unfinished"
	switchMigrateFails     = "migrate-fails"
	switchRecordUnreadable = "record-unreadable"
	switchGuestRange       = "guest-out-of-range"
	switchGuestLacks       = "guest-lacks"
	switchRuntimeDamaged   = "runtime-damaged"
	switchRuntimeRange     = "runtime-out-of-range"
	switchProcessesLeft    = "processes-left"
	switchFailAdopt        = "fail-adopt"
	switchCommand          = "command-running"
	switchTransfer         = "transfer-running"
	switchVolume           = "detached-volume"
	switchFailStart        = "fail-start"
	switchSlowStart        = "slow-start"
	switchConfigRefused    = "config-refused"
)

// SwitchPath is the file of a switch under a part's state directory.
func SwitchPath(stateDir, name string) string { return path.Join(stateDir, "switches", name) }

// switches reads switch files of one state directory for one program.
type switches struct {
	env      Env
	stateDir string
	version  string
}

// count tells how often the thing happens: 0 when off, fallback when on without a number.
func (s switches) count(name string, fallback int) int {
	data, err := s.env.ReadFile(SwitchPath(s.stateDir, name))
	if err != nil {
		return 0
	}
	return readSwitch(string(data), s.version, s.env.Now(), fallback)
}

func (s switches) on(name string) bool { return s.count(name, 1) > 0 }

// readSwitch reads the content of a switch file: [VERSION|NUMBER] [until UNIXSECONDS].
func readSwitch(content, version string, now time.Time, fallback int) int {
	words := strings.Fields(content)
	n := fallback
	if len(words) > 0 && words[0] != "until" {
		if number, err := strconv.Atoi(words[0]); err == nil {
			n = number
		} else if words[0] != version {
			return 0
		}
		words = words[1:]
	}
	if len(words) == 2 && words[0] == "until" {
		end, err := strconv.ParseInt(words[1], 10, 64)
		if err == nil && now.Unix() >= end {
			return 0
		}
	}
	return max(n, 0)
}
