package main

import (
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeArguments returns the arguments of cobra's completion command. kubectl passes the
// arguments of the plugin, with an incomplete last one.
func completeArguments(args []string) []string {
	if len(args) == 0 {
		args = []string{""}
	}
	return append([]string{cobra.ShellCompRequestCmd}, args...)
}

// addCompletion adds completion of flag values to a command and its subcommands.
func addCompletion(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		if choice, ok := f.Value.(interface{ choices() []string }); ok {
			complete = cobra.FixedCompletions(choice.choices(), cobra.ShellCompDirectiveNoFileComp)
		}
		switch f.Name {
		case "data-dir":
			complete = completeFolders(anyNumber)
		case "namespace":
			complete = cobra.NoFileCompletions
		}
		if complete != nil {
			register(c, f.Name, complete)
		}
	})
	for _, below := range c.Commands() {
		addCompletion(below)
	}
}

// register adds completion of a flag, unless it exists.
func register(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = c.RegisterFlagCompletionFunc(flag, complete) // the error is that it does
}

// completeFolders completes up to n arguments as folders.
func completeFolders(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

// completeManifests completes up to n arguments as files with objects, or folders.
func completeManifests(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// anyNumber is the number of arguments of a command without a limit.
const anyNumber = math.MaxInt
