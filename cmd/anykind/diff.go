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
		Short: "Find breaking changes between two versions of a CustomResourceDefinition",
		Long: `Find changes from an old to a new CustomResourceDefinition that affect existing objects
and clients: removed fields, versions and values, stricter rules, new defaults, and fields
that conversions lose. Each finding has a severity, a reason, the effect of ratcheting on
stored objects, and a remedy.

OLD and NEW can be files, folders, or - for standard input. Definitions are matched by
name.

Exit codes: 0 without breaking changes; 1 with a breaking change; 3 if a file cannot be
read.`,
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
				return unsureError{fmt.Errorf("no CustomResourceDefinitions in one of %v", args)}
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
	addOutput(c.Flags(), &output, "output format: text, json or yaml", "text", "json", "yaml")
	c.Flags().BoolVar(&all, "all", false, "show safe changes, too")
	return c
}

// nameCommands writes commands in remedies by the name of the program.
func nameCommands(cmd *cobra.Command, differences []change.Difference) {
	for _, d := range differences {
		for i := range d.Findings {
			d.Findings[i].WayOut = asCalled(cmd.Root(), d.Findings[i].WayOut)
		}
	}
}
