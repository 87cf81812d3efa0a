package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
)

func crdCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "crd",
		Short: "Check, compare and write CustomResourceDefinitions",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(lintCommand(), diffCommand(), tryCommand(), inferCommand(), docsCommand(), crdConvertCommand())
	return c
}

func lintCommand() *cobra.Command {
	var output outputFlag
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check CustomResourceDefinitions as a server would, offline",
		Long: `Check the CustomResourceDefinitions in YAML or JSON files as a server would, offline:
structural schemas, the compilation of CEL rules, and the estimated cost of each rule
against its limit. For a rule above the limit, it suggests bounds that are low enough.

A FILE can be a folder of files, or - for standard input. Other objects are skipped;
anykind check validates these, too.

Exit codes: 0 if a server would accept all definitions; 1 if it would reject one; 3 if a
file cannot be read.`,
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
				return fmt.Errorf("no CustomResourceDefinitions in %v", args)
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
