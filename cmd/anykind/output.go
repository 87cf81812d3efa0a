package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// An outputFlag is the output format of a command.
type outputFlag struct {
	form  string
	forms []string
}

// addOutput adds the flag with the formats of the command. The first one is the default.
func addOutput(flags *pflag.FlagSet, o *outputFlag, usage string, forms ...string) {
	*o = outputFlag{forms[0], forms}
	flags.VarP(o, "output", "o", usage)
}

func (o *outputFlag) choices() []string { return o.forms }
func (o *outputFlag) String() string    { return o.form }
func (o *outputFlag) Type() string      { return "string" }
func (o *outputFlag) Set(s string) error {
	if !slices.Contains(o.forms, s) {
		return fmt.Errorf("want one of %s", strings.Join(o.forms, ", "))
	}
	o.form = s
	return nil
}

// writeFound writes the findings of a command as text, JSON or YAML.
func writeFound[T any](cmd *cobra.Command, o *outputFlag, writeText, writeJSON func(io.Writer, T) error, found T) error {
	switch o.form {
	case "json":
		return writeJSON(cmd.OutOrStdout(), found)
	case "yaml":
		var buffer bytes.Buffer
		if err := writeJSON(&buffer, found); err != nil {
			return err
		}
		text, err := yaml.JSONToYAML(buffer.Bytes())
		if err == nil {
			_, err = cmd.OutOrStdout().Write(text)
		}
		return err
	}
	return writeText(cmd.OutOrStdout(), found)
}
