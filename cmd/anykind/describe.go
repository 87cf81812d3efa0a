package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A described command holds the contents of a man page.
type described struct {
	Path     string          `json:"path"` // names, from the program to the command
	Usage    string          `json:"usage"`
	Short    string          `json:"short"`
	Long     string          `json:"long,omitempty"`
	Example  string          `json:"example,omitempty"`
	Flags    []describedFlag `json:"flags,omitempty"`
	Commands []described     `json:"commands,omitempty"`
}

type describedFlag struct {
	Section   string `json:"section,omitempty"`
	Name      string `json:"name"`
	Shorthand string `json:"shorthand,omitempty"`
	Value     string `json:"value,omitempty"` // type of the value; empty for a switch
	Default   string `json:"default,omitempty"`
	Usage     string `json:"usage"`
}

// describeCommand prints all commands as JSON, for the program that writes man pages. Like cobra's
// __complete, it is internal.
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
	for _, s := range sectionsOf(cmd) {
		for _, f := range s.flags {
			value, usage := pflag.UnquoteUsage(f)
			d.Flags = append(d.Flags, describedFlag{Section: s.title, Name: f.Name, Shorthand: f.Shorthand, Value: value, Default: defaultOf(f), Usage: usage})
		}
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			d.Commands = append(d.Commands, describe(c))
		}
	}
	return d
}
