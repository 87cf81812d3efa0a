package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/crd/infer"
)

type inferFlags struct {
	kind, group, version string
	names                v1.CustomResourceDefinitionNames
	scope, output        string
	minimum              int
	schema, goType       string
}

func inferCommand() *cobra.Command {
	var f inferFlags
	c := &cobra.Command{
		Use:   "infer FILE...",
		Short: "Write a CustomResourceDefinition that sample objects pass",
		Long: `Write a CustomResourceDefinition that sample objects pass: with types, required fields,
enums where few values repeat, formats, maps, lists with unique keys, subresources and
columns, as far as the samples show them. What they leave open is said in comments and on
standard error. Each sample is checked with the definition before it is written.

A FILE may be a folder, or - for standard input. Samples are objects in YAML or JSON, of one
kind or several, and lists of them; objects of Kubernetes' own kinds are passed over. With
--kind and --group, documents without apiVersion and kind are the spec of an object.

With --json-schema, the definition is made of a JSON schema instead, such as Go tools
make of types, and the FILEs are samples that it has to let pass, if there are any.

The exit code is 1 if a sample would be refused, and 3 if a file cannot be read.`,
		Example: `  anykind crd infer samples/ > crontabs.yaml
  kubectl get crontabs -A -o yaml | anykind crd infer -
  anykind crd infer --group example.com --kind CronTab settings.json
  anykind crd infer --json-schema schema.json --group example.com --kind CronTab`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return inferAll(cmd, &f, args) },
	}
	f.add(c.Flags())
	return c
}

func (f *inferFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kind, "kind", "", "the kind: of documents without one, or the only one to look at")
	flags.StringVar(&f.group, "group", "", "the group of documents that have none, a domain such as example.com")
	flags.StringVar(&f.version, "version", "v1alpha1", "the version of documents that have none")
	flags.StringVar(&f.names.Plural, "plural", "", "the plural of the kind (default: that of an English word)")
	flags.StringVar(&f.names.Singular, "singular", "", "the singular of the kind (default: the kind in small letters)")
	flags.StringSliceVar(&f.names.ShortNames, "short-names", nil, "short names of the kind")
	flags.StringSliceVar(&f.names.Categories, "categories", nil, "categories of the kind, such as all")
	flags.StringVar(&f.scope, "scope", "", "Namespaced or Cluster (default: Namespaced if samples have a namespace)")
	flags.IntVar(&f.minimum, "min-samples", infer.MinSamples, "how many samples must have a field before what they have in common is required of others, too")
	flags.StringVar(&f.schema, "json-schema", "", "make the definition of the JSON schema in this file, or of standard input if it is -")
	flags.StringVar(&f.goType, "type", "", "the type in the JSON schema, if it has several: a name in $defs")
	flags.StringVarP(&f.output, "output", "o", "yaml", "how to write definitions: yaml or json")
}

// check refuses flags that do not go together.
func (f *inferFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.schema == "":
		return usageError{fmt.Errorf("%s needs a file with samples; see %[1]s --help", cmd.CommandPath())}
	case f.scope != "" && f.scope != string(v1.NamespaceScoped) && f.scope != string(v1.ClusterScoped):
		return usageError{fmt.Errorf("--scope is %q; it can be Namespaced or Cluster", f.scope)}
	case f.output != "yaml" && f.output != "json":
		return usageError{fmt.Errorf("--output is %q; it can be yaml or json", f.output)}
	case f.minimum < 1:
		return usageError{errors.New("--min-samples must be 1 or more")}
	case f.group != "" && f.kind == "" && f.schema == "":
		return usageError{errors.New("--group needs --kind, too: together they say what documents are that do not say it")}
	case f.schema != "" && f.group == "":
		return usageError{errors.New("--json-schema needs --group: a schema does not say it")}
	case f.schema == "-" && slices.Contains(args, "-"):
		return usageError{errors.New("the schema and the samples cannot both be standard input")}
	case f.schema == "" && f.goType != "":
		return usageError{errors.New("--type is that of a --json-schema")}
	}
	return nil
}
