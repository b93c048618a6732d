package command

import "al.essio.dev/pkg/shellescape"

// String is the command as one line that can be pasted into a shell on the host. It is the line
// that is shown, logged and run (inside a [Batch.Script]). Stdin is not part of it.
func (c Command) String() string {
	return shellescape.QuoteCommand(c.words())
}

// words are the argv with the become prefix in front. sudo never asks: without -n it would wait
// for a password that nobody types.
func (c Command) words() []string {
	switch c.As {
	case Login:
		return c.Argv
	case Root:
		return append([]string{"sudo", "-n", "--"}, c.Argv...)
	default:
		return append([]string{"sudo", "-n", "-u", c.As, "--"}, c.Argv...)
	}
}

// elevated is the line inside a shell that already runs as root: root's own commands need no
// prefix, the login user's are handed back to whoever called sudo.
func (c Command) elevated() string {
	switch c.As {
	case Root:
		return shellescape.QuoteCommand(c.Argv)
	case Login:
		return `sudo -n -u "$SUDO_USER" -- ` + shellescape.QuoteCommand(c.Argv)
	default:
		return c.String()
	}
}

// NeedsBecome tells if any command of the batch runs as somebody else than the login user.
func (b Batch) NeedsBecome() bool {
	for _, c := range b.Commands {
		if c.As != Login {
			return true
		}
	}
	return false
}
