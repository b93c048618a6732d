package cli

import "github.com/spf13/cobra"

func demoCmd(World) *cobra.Command { return &cobra.Command{Use: "demo"} }
