package main

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/offline/check"
)

func checkCommand() *cobra.Command {
	var o check.Options
	var output outputFlag
	var diff bool
	validation := validationFlag(metav1.FieldValidationStrict)
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Say what a server would say to objects, without a server",
		Long: `Say what a server would say to the objects in YAML or JSON files: the same code
answers that serves them, with the same words. Custom resources are checked against the
CustomResourceDefinitions among the objects, and those of --crds. Namespaces, owners and
other objects need not exist, and no webhook is called.

A FILE may be a folder with others in it, or - for standard input. An object that is in
a file of --old, too, is checked as an update of that.

The exit code is 0 if all objects would be accepted, 1 if any would be refused or loses
fields in another version, and 3 if any could not be checked: it cannot be read, or there
is no definition of its kind.`,
		Example: `  anykind check config/crd config/samples
  kustomize build . | anykind check --crds config/crd -
  anykind check --old deployed/ --diff desired/
  anykind check --crds config/crd --to-version v2 -o yaml widget.yaml`,
		Args:              someArguments("a file"),
		ValidArgsFunction: completeManifests(anyNumber),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Validation = string(validation)
			bar := newBar(cmd.ErrOrStderr(), "checked")
			o.Progress = bar.show
			report, err := check.Run(cmd.Context(), args, cmd.InOrStdin(), o)
			bar.clear()
			switch {
			case err != nil:
				return unsureError{err}
			case len(report.Results) == 0:
				return unsureError{fmt.Errorf("there is no object in %v", args)}
			}
			if diff {
				if err := report.WriteDiff(cmd.OutOrStdout()); err != nil {
					return err
				}
				err = report.WriteText(cmd.ErrOrStderr())
			} else {
				err = writeReport(cmd, report, &output)
			}
			if err != nil {
				return err
			}
			return verdictOf(report.Summary)
		},
	}
	flags := c.Flags()
	addReportOutput(flags, &output)
	flags.BoolVar(&diff, "diff", false, "show what is changed: from the file to what would be stored, or from what is in --old")
	flags.StringSliceVar(&o.Definitions, "crds", nil, "files and folders with CustomResourceDefinitions that are not to be checked; those among the objects come first")
	flags.StringSliceVar(&o.Old, "old", nil, "files and folders with what is stored already")
	flags.StringVarP(&o.Namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of objects that name none")
	flags.Var(&validation, "validate", "what to do with unknown fields: strict (or true) refuses them, warn warns, ignore (or false) does neither")
	flags.BoolVar(&o.PassUnknown, "pass-unknown-kinds", false, "pass over objects of kinds without definition")
	flags.StringVar(&o.Convert.To, "to-version", "", "show objects in this version with -o yaml or --diff")
	flags.BoolVar(&o.Convert.RoundTrip, "round-trip", false, "write each object in every other version that is served, and say what it loses")
	flags.Var(&o.RuntimeConfig, "runtime-config", "built-in versions and resources that are served or not, as for anykind serve")
	flags.BoolVar(&o.AllowPrivileged, "allow-privileged", true, "let containers be privileged, as most clusters do")
	return c
}
