package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/offline/check"
)

// checkFlags are the flags of check.
type checkFlags struct {
	check.Options
	validation validationFlag
	since      string
	catalog    bool
	watch      bool
	diff       bool
	output     outputFlag
}

func checkCommand() *cobra.Command {
	f := &checkFlags{validation: metav1.FieldValidationStrict}
	c := &cobra.Command{
		Use:   "check FILE...",
		Short: "Validate objects as a server would, offline",
		Long: `Validate the objects in YAML or JSON files as a server would, offline: the code and the
messages are those of the server. CustomResourceDefinitions come from the same files, from
--crds, and from the catalog. Namespaces, owners and other objects need not exist. No
webhook is called.

A FILE can be a folder of files, or - for standard input. A folder with a kustomization.yaml
is built with kustomize or kubectl. The place of an object from helm template is its
template. An object that is also in a file of --old is validated as an update.

With --since, the objects that differ from a revision of git are validated: changed objects
as updates, new ones as creates, removed ones as deletes. FILE is the current folder by
default.

Exit codes: 0 if a server would accept all objects; 1 if it would reject an object, or an
object loses fields in another version; 3 if an object cannot be read or has no
CustomResourceDefinition.`,
		Example: `  anykind check config/crd config/samples
  anykind check --since origin/main
  anykind check --crds config/crd overlays/prod
  helm template mychart | anykind check -
  anykind check --old deployed/ --diff desired/
  anykind check --crds config/crd --to-version v2 -o yaml widget.yaml`,
		Args:              f.validate,
		ValidArgsFunction: completeManifests(anyNumber),
		RunE:              f.run,
	}
	f.add(c.Flags())
	return c
}

func (f *checkFlags) add(to *pflag.FlagSet) {
	to.SortFlags = false
	flags.AddSection(to, "Object", func(section *pflag.FlagSet) {
		section.StringVar(&f.since, "since", "", "`revision` of git, or a range A..B or A...B: validate the changes of objects since then")
		section.StringSliceVar(&f.Old, "old", nil, "files and folders with the objects that are already stored")
		section.StringSliceVar(&f.Definitions, "crds", nil, "files and folders with CustomResourceDefinitions to use without validation; those in FILE take precedence")
		section.BoolVar(&f.catalog, "catalog", false, "take missing CustomResourceDefinitions from the catalog (anykind catalog)")
		section.BoolVar(&f.PassUnknown, "pass-unknown-kinds", false, "skip objects of kinds without CustomResourceDefinition")
		section.StringVarP(&f.Namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of objects without one")
	})
	flags.AddSection(to, "Server", func(section *pflag.FlagSet) {
		section.Var(&f.validation, "validate", "handling of unknown fields: strict (or true) rejects, warn warns, ignore (or false) drops them")
		section.BoolVar(&f.AllowPrivileged, "allow-privileged", true, "allow privileged containers, as most clusters do")
		section.Var(&f.RuntimeConfig, "runtime-config", "built-in versions and resources to enable or disable, as for anykind serve")
		section.Var(&f.Gates, "feature-gates", "feature gates of Kubernetes, NAME=BOOL, as for anykind serve")
		section.StringSliceVar(&f.Gates.Emulated, "emulated-version", nil, "release of Kubernetes that validates the objects: "+gate.Oldest.String()+" to "+gate.Current.String())
	})
	flags.AddSection(to, "Output", func(section *pflag.FlagSet) {
		addReportOutput(section, &f.output)
		section.BoolVar(&f.watch, "watch", false, "check again when files change, and print the changes of verdicts")
		section.BoolVar(&f.diff, "diff", false, "print the difference between the file, or the stored object, and the object that a server would store")
		section.StringVar(&f.Convert.To, "to-version", "", "version of the objects in the output of -o yaml and --diff")
		section.BoolVar(&f.Convert.RoundTrip, "round-trip", false, "convert each object to every other served version and back, and report lost fields")
	})
}
