package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailed = 1 // the command failed
	exitUsage  = 2 // the command line is invalid
	exitUnsure = 3 // an input could not be checked
)

// A usageError reports an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// An unsureError reports an input that could not be checked, when all others are valid.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

// An exitError is the exit code of a program that has already printed its error.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// someArguments requires an argument.
func someArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("%s needs %s; see %[1]s --help", cmd.CommandPath(), what)}
		}
		return nil
	}
}

// noArguments rejects arguments that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s takes no arguments, but was given %q; see %[1]s --help", cmd.CommandPath(), args[0])}
}
