package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/lint"
)

func crdCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "crd",
		Short: "Work on CustomResourceDefinitions without a server",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(lintCommand())
	return c
}

func lintCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Say what a server would say to CustomResourceDefinitions",
		Long: `Say what a server would say to the CustomResourceDefinitions in YAML or JSON
files: whether their schemas are structural, their rules compile, and what each
rule may cost against its limit. Where that is too much, it says which bounds are
missing and which would be enough.

A FILE may be a folder, or - for standard input. Other objects are passed over.
The exit code is 0 if all would be accepted, and 1 if any would be refused.`,
		Example: `  anykind crd lint config/crd/bases
  kustomize build config/crd | anykind crd lint --output json -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s needs a file; see %[1]s --help", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			write := map[string]func(io.Writer, []lint.Result) error{"text": lint.WriteText, "json": lint.WriteJSON}[output]
			if write == nil {
				return usageError{fmt.Errorf("--output is %q; it can be text or json", output)}
			}
			results, err := lint.Files(cmd.Context(), args, cmd.InOrStdin())
			if failed := write(cmd.OutOrStdout(), results); err == nil {
				err = failed
			}
			switch n := lint.Problems(results); {
			case err != nil:
				return err
			case len(results) == 0:
				return fmt.Errorf("there is no CustomResourceDefinition in %v", args)
			case n > 0:
				return fmt.Errorf("problems found: %d", n)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "how to write what was found: text or json")
	return c
}
