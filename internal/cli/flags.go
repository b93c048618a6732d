package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// fleetFlags are the flags of every command that reads an inventory; the names are Ansible's.
type fleetFlags struct {
	inventory []string
	limit     string
	forks     int
	user      string
	key       string
	become    bool
	askPass   bool
	passFile  string
	extra     []string
	sshArgs   string
	output    string
	verbose   int
}

func (f *fleetFlags) add(c *cobra.Command, outputs ...string) {
	fs := c.Flags()
	fs.StringArrayVarP(&f.inventory, "inventory", "i", nil, "inventory: file, directory or executable (repeatable)")
	fs.StringVarP(&f.limit, "limit", "l", "all", "only these hosts: Ansible's patterns")
	fs.IntVarP(&f.forks, "forks", "f", 50, "hosts at the same time")
	fs.StringVarP(&f.user, "user", "u", "", "login user")
	fs.StringVar(&f.key, "private-key", "", "private key file")
	fs.BoolVarP(&f.become, "become", "b", true, "run as root through sudo where needed (always on)")
	fs.BoolVarP(&f.askPass, "ask-become-pass", "K", false, "ask for the sudo password")
	fs.StringVar(&f.passFile, "become-password-file", "", "file that holds the sudo password")
	fs.StringArrayVarP(&f.extra, "extra-vars", "e", nil, "variables over everything else: KEY=VALUE, JSON or @FILE")
	fs.StringVar(&f.sshArgs, "ssh-common-args", "", "words for every connection, as ssh takes them")
	fs.CountVarP(&f.verbose, "verbose", "v", "more detail")
	if len(outputs) > 0 {
		fs.StringVar(&f.output, "output", outputs[0], "output: "+strings.Join(outputs, ", "))
		inner := c.PreRunE
		c.PreRunE = func(c *cobra.Command, args []string) error {
			for _, o := range outputs {
				if f.output == o {
					if inner != nil {
						return inner(c, args)
					}
					return nil
				}
			}
			return fail(exitUsage, c.CommandPath()+" --output "+outputs[0], "cannot print as %q: it is one of %s", f.output, strings.Join(outputs, ", "))
		}
	}
}

// targetFlags say what to upgrade to.
type targetFlags struct {
	to        string
	debs      []string
	agentDebs []string
	serial    int
	cleanOld  bool
}

func (f *targetFlags) add(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.to, "to", "", "version to upgrade to; default: the version of the .debs")
	fs.StringArrayVar(&f.debs, "debs", nil, "directory or file with the target's .debs (repeatable)")
	fs.StringArrayVar(&f.agentDebs, "agent-deb", nil, "kibo-agent's .deb, or a directory with it; default: among --debs, then beside this program")
	fs.IntVar(&f.serial, "serial", 1, "nodes at the same time")
	fs.BoolVar(&f.cleanOld, "clean-stage", false, "remove a staging directory that an earlier attempt left incomplete")
}

// stateDir is where runs are kept on the operator's machine.
func (w World) stateDir() string {
	if d := w.Env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "kibo-rollout")
	}
	return filepath.Join(w.Home, ".local", "state", "kibo-rollout")
}

// besideProgram lists the directories where a package of this tool lies beside the program.
func besideProgram() []string {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	dir := filepath.Dir(exe)
	return []string{dir, filepath.Join(dir, "..", "share", "kibo-rollout")}
}
