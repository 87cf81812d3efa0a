package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed = 1 // the server could not start, or not go on
	exitUsage  = 2 // the command line was not understood
	exitUnsure = 3 // something could not be checked
)

// A usageError is about the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// An unsureError says that something could not be checked, and that all else is right.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// someArguments refuses to have none.
func someArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("%s needs %s; see %[1]s --help", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// noArguments refuses arguments that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no arguments, but was given %q; see %[1]s --help", cmd.CommandPath(), args[0])}
}
