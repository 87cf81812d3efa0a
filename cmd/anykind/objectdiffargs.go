package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// check returns the usage error of arguments and flags.
func (f *momentFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.fork != "" && (f.from != "" || f.to != "" || f.all || f.namespace != "" || len(args) > 0):
		return usageError{errors.New("--fork goes without a KIND, --from, --to, --all and --namespace")}
	case f.fork != "":
		return nil
	case f.from == "":
		return usageError{fmt.Errorf("%s needs --from; see %[1]s --help", cmd.CommandPath())}
	case f.all == (len(args) > 0):
		return usageError{fmt.Errorf("%s needs a KIND or --all; see %[1]s --help", cmd.CommandPath())}
	case len(args) > 2:
		return usageError{errors.New("several kinds are separated by commas")}
	}
	return nil
}
