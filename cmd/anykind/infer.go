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
		Short: "Generate a CustomResourceDefinition from sample objects",
		Long: `Generate a CustomResourceDefinition from sample objects: types, required fields, enums,
formats, maps, lists with unique keys, subresources and printer columns. Comments and
standard error name assumptions that the samples do not prove. The definition is written
only if it accepts every sample.

A FILE can be a folder of files, or - for standard input. Samples are objects in YAML or
JSON, of one kind or several, and lists of them; objects of built-in kinds are skipped.
With --kind and --group, documents without apiVersion and kind are the spec of an object.

With --json-schema, the definition comes from a JSON schema, such as Go tools generate
from types. The FILEs are then optional samples that the definition must accept.

Exit codes: 1 if the definition rejects a sample; 3 if a file cannot be read.`,
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
	flags.StringVar(&f.kind, "kind", "", "kind of documents without one; otherwise, the only kind to read")
	flags.StringVar(&f.group, "group", "", "group of documents without one, a domain such as example.com")
	flags.StringVar(&f.version, "version", "v1alpha1", "version of documents without one")
	flags.StringVar(&f.names.Plural, "plural", "", "plural of the kind (default: the English plural)")
	flags.StringVar(&f.names.Singular, "singular", "", "singular of the kind (default: the kind in lower case)")
	flags.StringSliceVar(&f.names.ShortNames, "short-names", nil, "short names of the kind")
	flags.StringSliceVar(&f.names.Categories, "categories", nil, "categories of the kind, such as all")
	flags.StringVar(&f.scope, "scope", "", "Namespaced or Cluster (default: Namespaced if samples have a namespace)")
	flags.IntVar(&f.minimum, "min-samples", infer.MinSamples, "minimum number of samples with a field before their common properties become requirements")
	flags.StringVar(&f.schema, "json-schema", "", "file with a JSON schema to generate the definition from, - for standard input")
	flags.StringVar(&f.goType, "type", "", "type in the JSON schema, if it has several: a name in $defs")
	flags.StringVarP(&f.output, "output", "o", "yaml", "output format: yaml or json")
}

// check rejects invalid combinations of flags.
func (f *inferFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.schema == "":
		return usageError{fmt.Errorf("%s needs a file with samples; see %[1]s --help", cmd.CommandPath())}
	case f.scope != "" && f.scope != string(v1.NamespaceScoped) && f.scope != string(v1.ClusterScoped):
		return usageError{fmt.Errorf("--scope is %q; want Namespaced or Cluster", f.scope)}
	case f.output != "yaml" && f.output != "json":
		return usageError{fmt.Errorf("--output is %q; want yaml or json", f.output)}
	case f.minimum < 1:
		return usageError{errors.New("--min-samples must be 1 or more")}
	case f.group != "" && f.kind == "" && f.schema == "":
		return usageError{errors.New("--group needs --kind: documents without apiVersion and kind need both")}
	case f.schema != "" && f.group == "":
		return usageError{errors.New("--json-schema needs --group: a schema has no group")}
	case f.schema == "-" && slices.Contains(args, "-"):
		return usageError{errors.New("--json-schema and FILE cannot both be standard input")}
	case f.schema == "" && f.goType != "":
		return usageError{errors.New("--type needs --json-schema")}
	}
	return nil
}
