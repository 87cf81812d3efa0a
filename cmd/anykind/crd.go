package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
)

func crdCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "crd",
		Short: "Work on CustomResourceDefinitions without a server",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(lintCommand(), diffCommand(), tryCommand(), inferCommand(), docsCommand())
	return c
}

func lintCommand() *cobra.Command {
	var output outputFlag
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Say what a server would say to CustomResourceDefinitions",
		Long: `Say what a server would say to the CustomResourceDefinitions in YAML or JSON
files: whether their schemas are structural, their rules compile, and what each
rule may cost against its limit. Where that is too much, it says which bounds are
missing and which would be enough.

A FILE may be a folder, or - for standard input. Other objects are passed over;
anykind check checks these, too. The exit code is 0 if all would be accepted, 1 if
any would be refused, and 3 if any could not be read.`,
		Example: `  anykind crd lint config/crd/bases
  kustomize build config/crd | anykind crd lint --output json -`,
		Args:              someArguments("a file"),
		ValidArgsFunction: completeManifests(anyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := check.Run(cmd.Context(), args, cmd.InOrStdin(), check.Options{OnlyDefinitions: true})
			if err != nil {
				return unsureError{err}
			}
			if len(report.Results) == 0 {
				return fmt.Errorf("there is no CustomResourceDefinition in %v", args)
			}
			if err := writeReport(cmd, report, &output); err != nil {
				return err
			}
			return verdictOf(report.Summary)
		},
	}
	addReportOutput(c.Flags(), &output)
	return c
}
