package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A described command is what its manual says, for the program that writes man pages.
type described struct {
	Path     string          `json:"path"` // its names, from the program's on
	Usage    string          `json:"usage"`
	Short    string          `json:"short"`
	Long     string          `json:"long,omitempty"`
	Example  string          `json:"example,omitempty"`
	Flags    []describedFlag `json:"flags,omitempty"`
	Commands []described     `json:"commands,omitempty"`
}

type describedFlag struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Value     string `json:"value,omitempty"` // what it takes, nothing if it is a switch
	Default   string `json:"default,omitempty"`
	Usage     string `json:"usage"`
}

// describeCommand prints what all commands are, as JSON. It is for programs, like cobra's
// __complete, and no part of what is promised.
func describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "__describe",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetEscapeHTML(false)
			return out.Encode(describe(cmd.Root()))
		},
	}
}

func describe(cmd *cobra.Command) described {
	cmd.InitDefaultHelpFlag()
	d := described{Path: cmd.CommandPath(), Usage: cmd.UseLine(), Short: cmd.Short, Long: cmd.Long, Example: cmd.Example}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		flag := describedFlag{Name: f.Name, Shorthand: f.Shorthand, Value: value, Usage: usage}
		switch f.DefValue {
		case "", "[]", "false", "0", "0s": // says nothing, as in the help
		default:
			flag.Default = f.DefValue
		}
		d.Flags = append(d.Flags, flag)
	})
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			d.Commands = append(d.Commands, describe(c))
		}
	}
	return d
}
