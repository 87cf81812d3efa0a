package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/conversion"
)

func crdConvertCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "convert",
		Short: "Write the conversion rules of a CustomResourceDefinition",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "init FILE",
		Short: "Write conversion rules that follow from the schemas of a CustomResourceDefinition",
		Long: `Write a CRDConversionConfig with a rule for each field that differs between the versions of
a CustomResourceDefinition. A comment with QUESTION stands before a rule that the schemas do not
decide: names that may mean the same field, or values that only one version has.

The rules are valid as they are, and lose nothing that rules can keep. The command prints the
rules, and the number of questions to standard error.`,
		Example: `  anykind crd convert init crd.yaml > rules.yaml
  anykind convert widget.yaml --to v2 --crds crd.yaml,rules.yaml`,
		Args:              someArguments("a file"),
		ValidArgsFunction: completeManifests(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := check.Definitions(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return fmt.Errorf("no CustomResourceDefinitions in %v", args)
			}
			for i, d := range all {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "---")
				}
				n, err := conversion.Suggest(cmd.OutOrStdout(), d)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d questions\n", d.Name, n)
			}
			return nil
		},
	})
	return c
}
