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
		Short: "Validate objects as a server would, offline",
		Long: `Validate the objects in YAML or JSON files as a server would, offline: the code and the
messages are those of the server. CustomResourceDefinitions come from the same files and
from --crds. Namespaces, owners and other objects need not exist. No webhook is called.

A FILE can be a folder of files, or - for standard input. An object that is also in a file
of --old is validated as an update.

Exit codes: 0 if a server would accept all objects; 1 if it would reject an object, or an
object loses fields in another version; 3 if an object cannot be read or has no
CustomResourceDefinition.`,
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
				return unsureError{fmt.Errorf("no objects in %v", args)}
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
	flags.BoolVar(&diff, "diff", false, "print the difference between the file, or the object of --old, and the object that a server would store")
	flags.StringSliceVar(&o.Definitions, "crds", nil, "files and folders with CustomResourceDefinitions to use without validation; those in FILE take precedence")
	flags.StringSliceVar(&o.Old, "old", nil, "files and folders with the objects that are already stored")
	flags.StringVarP(&o.Namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of objects without one")
	flags.Var(&validation, "validate", "handling of unknown fields: strict (or true) rejects, warn warns, ignore (or false) drops them")
	flags.BoolVar(&o.PassUnknown, "pass-unknown-kinds", false, "skip objects of kinds without CustomResourceDefinition")
	flags.StringVar(&o.Convert.To, "to-version", "", "version of the objects in the output of -o yaml and --diff")
	flags.BoolVar(&o.Convert.RoundTrip, "round-trip", false, "convert each object to every other served version and back, and report lost fields")
	flags.Var(&o.RuntimeConfig, "runtime-config", "built-in versions and resources to enable or disable, as for anykind serve")
	flags.BoolVar(&o.AllowPrivileged, "allow-privileged", true, "allow privileged containers, as most clusters do")
	return c
}
