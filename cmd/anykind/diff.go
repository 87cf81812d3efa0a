package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/change"
)

func diffCommand() *cobra.Command {
	var output outputFlag
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
		ValidArgsFunction: completeManifests(2),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			nameCommands(cmd, differences)
			if err := writeFound(cmd, &output, change.WriteText, change.WriteJSON, differences); err != nil {
				return err
			}
			if n := change.Count(differences, change.Breaking); n > 0 {
				return fmt.Errorf("breaking changes: %d", n)
			}
			return nil
		},
	}
	addOutput(c.Flags(), &output, "how to write what was found: text, json or yaml", "text", "json", "yaml")
	c.Flags().BoolVar(&all, "all", false, "show changes that are safe, too")
	return c
}

// nameCommands has the ways out name commands as they are called.
func nameCommands(cmd *cobra.Command, differences []change.Difference) {
	for _, d := range differences {
		for i := range d.Findings {
			d.Findings[i].WayOut = asCalled(cmd.Root(), d.Findings[i].WayOut)
		}
	}
}
