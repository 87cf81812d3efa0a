package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/server"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and which Kubernetes it is like",
		Args:  noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			v := server.BuildVersion()
			fmt.Fprintf(cmd.OutOrStdout(), "anykind %s\nKubernetes %s\n%s %s\n", v.Anykind, v.GitVersion, v.GoVersion, v.Platform)
			if v.GitCommit != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "commit %s %s\n", v.GitCommit, v.GitTreeState)
			}
		},
	}
}
