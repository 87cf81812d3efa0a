package main

import (
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeArguments are the arguments by which a command completes others: kubectl calls a program with
// those of its plugin, the last of which is not finished.
func completeArguments(args []string) []string {
	if len(args) == 0 {
		args = []string{""}
	}
	return append([]string{cobra.ShellCompRequestCmd}, args...)
}

// addCompletion has a command and those below it complete values of flags.
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

// register has a command complete the values of a flag, unless it does so already.
func register(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	_ = c.RegisterFlagCompletionFunc(flag, complete) // the error is that it does
}

// completeFolders completes so many arguments that are folders.
func completeFolders(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

// completeManifests completes at most so many arguments that are files with objects, or folders of them.
func completeManifests(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// anyNumber is how many arguments a command takes that does not count them.
const anyNumber = math.MaxInt
