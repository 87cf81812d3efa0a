package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/server"
)

func versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and which Kubernetes it is like",
		Long: `Say which version this program is, which Kubernetes it is like, and the commit that it is built from.
With -o json or -o yaml it prints what a server says at /version.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tellVersion(cmd.OutOrStdout(), server.BuildVersion(), format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "json or yaml, in place of lines")
	return cmd
}

func tellVersion(out io.Writer, v server.Version, format string) error {
	var data []byte
	var err error
	switch format {
	case "":
		data = fmt.Appendf(nil, "anykind %s\nKubernetes %s\n%s %s\n", v.Anykind, v.GitVersion, v.GoVersion, v.Platform)
		if v.GitCommit != "" {
			data = fmt.Appendf(data, "commit %s of %s, %s\n", v.GitCommit, v.BuildDate, v.GitTreeState)
		}
	case "json":
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		return usageError{errors.New("--output must be 'yaml' or 'json'")} // kubectl's words
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
