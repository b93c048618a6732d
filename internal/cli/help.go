package cli

// usageTemplate is what help and usage show of every command: flags and commands first, exit codes and one example to paste last.
func usageTemplate() string {
	return `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}

{{.CommandPath}} COMMAND --help says more.{{end}}{{if .HasAvailableFlags}}

Flags:
{{.Flags.FlagUsages | trimTrailingWhitespaces}}{{end}}

` + exitHelp() + `
Example:
{{.Example}}
`
}
