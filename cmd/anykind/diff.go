package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/check"
	"github.com/anykind/anykind/internal/crd/change"
)

func diffCommand() *cobra.Command {
	var output string
	var all bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what a new CustomResourceDefinition means for those who have objects of the old one",
		Long: `Say what a new CustomResourceDefinition in place of an old one means for those who
have objects of it: which fields, versions and values go, which rules refuse more, what
is filled in from now on, and what gets lost between versions. Each finding says how bad
it is, why, whether ratcheting saves objects that are stored, and what to do first.

OLD and NEW may be files, folders, or - for standard input; definitions are compared by
their names. The exit code is 0 if nothing breaks, 1 if something does, and 3 if a file
cannot be read.`,
		Example: `  anykind crd diff released/crds config/crd
  git show v1.0:crd.yaml | anykind crd diff - crd.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == "-" && args[1] == "-" {
				return usageError{fmt.Errorf("%s needs an old and a new file; see %[1]s --help", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(io.Writer, []change.Difference) error{"text": change.WriteText, "json": change.WriteJSON}[output]
			if write == nil {
				return usageError{fmt.Errorf("--output is %q; it can be text or json", output)}
			}
			old, err := check.Definitions(args[:1], cmd.InOrStdin())
			if err != nil {
				return unsureError{err}
			}
			now, err := check.Definitions(args[1:], cmd.InOrStdin())
			switch {
			case err != nil:
				return unsureError{err}
			case len(old) == 0 || len(now) == 0:
				return unsureError{fmt.Errorf("there is no CustomResourceDefinition in one of %v", args)}
			}
			differences := change.CompareAll(old, now)
			if !all {
				differences = change.Without(differences, change.Safe)
			}
			if err := write(cmd.OutOrStdout(), differences); err != nil {
				return err
			}
			if n := change.Count(differences, change.Breaking); n > 0 {
				return fmt.Errorf("breaking changes: %d", n)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "how to write what was found: text or json")
	c.Flags().BoolVar(&all, "all", false, "show changes that are safe, too")
	return c
}
