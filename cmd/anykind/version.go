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
		Short: "Print the version of anykind and of the Kubernetes API",
		Long: `Print the version of anykind, the version of Kubernetes that it implements, and the commit
of the build. With -o json or -o yaml it prints the response of the path /version.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tellVersion(cmd.OutOrStdout(), server.BuildVersion(), format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "output format: json or yaml (default: text)")
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
