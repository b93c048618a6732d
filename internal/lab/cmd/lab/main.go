//go:build linux

// Command lab makes and takes down a fleet of real Debian hosts on this machine.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kibotos/kibo-rollout/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit := 0
	root := command(&exit)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		exit = 1
	}
	os.Exit(exit)
}

// command is the whole command line. exit gets the exit status of `lab exec`.
func command(exit *int) *cobra.Command {
	var dir string
	root := &cobra.Command{Use: "lab", Short: "Real Debian hosts on this machine, with the stand-in Kibotos",
		SilenceUsage: true, SilenceErrors: true}
	root.PersistentFlags().StringVar(&dir, "dir", lab.DefaultDir, "directory of the lab")
	root.AddCommand(up(&dir), down(&dir), status(&dir), run(&dir, exit),
		onHost(&dir, "kill HOST", "End a host as a power cut does", (*lab.Lab).KillHost),
		onHost(&dir, "boot HOST", "Boot a host that is down", (*lab.Lab).BootHost),
		onHost(&dir, "reboot HOST", "Reboot a host the orderly way", (*lab.Lab).Reboot),
		onHost(&dir, "stop-sshd HOST", "Freeze a host's sshd: to clients the host hangs", (*lab.Lab).StopSSHD),
		onHost(&dir, "continue-sshd HOST", "Let a frozen sshd go on", (*lab.Lab).ContinueSSHD))
	return root
}

func up(dir *string) *cobra.Command {
	var hosts, version string
	var bare bool
	cmd := &cobra.Command{Use: "up", Short: "Make the lab, or repair it", Args: cobra.NoArgs}
	cmd.Flags().StringVar(&hosts, "hosts", lab.DefaultHosts, "parts=count[@suite], …; parts may be joined by +")
	cmd.Flags().StringVar(&version, "version", "0.1.2", "release of the stand-in to install")
	cmd.Flags().BoolVar(&bare, "bare", false, "hosts without the stand-in")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		specs, err := lab.ParseHosts(hosts)
		if err != nil {
			return err
		}
		source := ""
		if !bare {
			if source, err = checkout(); err != nil {
				return err
			}
		}
		start := time.Now()
		made, err := lab.Up(cmd.Context(), lab.Spec{Dir: *dir, Cache: os.Getenv("KIBO_LAB_CACHE"), Hosts: specs,
			Source: source, Version: version, Log: func(format string, args ...any) {
				fmt.Fprintf(os.Stderr, "%6.1fs  "+format+"\n", append([]any{time.Since(start).Seconds()}, args...)...)
			}})
		if err != nil {
			return fmt.Errorf("%w\nnext: lab up (repairs what is there), or lab down", err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "inventory: %s\ndebs:      %s\nlog in:    ssh -F %s %s\n",
			made.Inventory(), made.Debs("VERSION"), made.SSHConfig(), made.Hosts()[0].Name)
		return err
	}
	return cmd
}

func down(dir *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "down", Short: "End every process of the lab and remove all it made", Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&all, "all", false, "every lab of this machine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dirs := []string{*dir}
		if all {
			var err error
			if dirs, err = lab.Dirs(); err != nil {
				return err
			}
		}
		for _, one := range dirs {
			if err := lab.Down(cmd.Context(), one); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func status(dir *string) *cobra.Command {
	return &cobra.Command{Use: "status", Short: "List the hosts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			open, err := lab.Open(*dir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			for _, host := range open.Hosts() {
				state := "down"
				if output, err := open.Exec(cmd.Context(), host.Name, "systemctl", "is-system-running"); err == nil {
					state = cmp.Or(strings.TrimSpace(output.Stdout), "starting")
				}
				if _, err := fmt.Fprintf(out, "%-10s %-9s %s:%-5d %s\n", host.Name, host.Suite, host.Address, host.Port, state); err != nil {
					return err
				}
			}
			return nil
		}}
}

func run(dir *string, exit *int) *cobra.Command {
	return &cobra.Command{Use: "exec HOST -- ARGV...", Short: "Run a command on a host as root, not through sshd",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			open, err := lab.Open(*dir)
			if err != nil {
				return err
			}
			*exit, err = open.Stream(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[1:]...)
			return err
		}}
}

// onHost is a command that does one thing to one host.
func onHost(dir *string, use, short string, do func(*lab.Lab, context.Context, string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			open, err := lab.Open(*dir)
			if err != nil {
				return err
			}
			return do(open, cmd.Context(), args[0])
		}}
}

// checkout finds the source that the stand-in is built from: the module around the working directory.
func checkout() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "internal", "standin")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = fmt.Errorf("cannot find the stand-in's source: run lab inside the checkout, or with --bare")
		}
	}
	return "", err
}
