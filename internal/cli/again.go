package cli

import (
	"strconv"

	"github.com/kibotos/kibo-rollout/remote/command"
)

// again are the flags of this call, to be typed again with another command. A password is asked for again, or read from its file.
func (f *fleetFlags) again(t *targetFlags) string {
	var argv []string
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				argv = append(argv, flag, v)
			}
		}
	}
	add("-i", f.inventory...)
	if f.limit != "all" {
		add("-l", f.limit)
	}
	add("-u", f.user)
	add("--private-key", f.key)
	add("--become-password-file", f.passFile)
	if f.askPass {
		argv = append(argv, "-K")
	}
	add("-e", f.extra...)
	add("--ssh-common-args", f.sshArgs)
	if t != nil {
		add("--debs", t.debs...)
		add("--to", t.to)
		add("--agent-deb", t.agentDebs...)
		if t.serial > 1 {
			add("--serial", strconv.Itoa(t.serial))
		}
	}
	return command.Command{Argv: argv}.String()
}
