package main

import (
	"fmt"

	"github.com/spf13/cobra"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/example"
	"github.com/anykind/anykind/internal/schema/crd/markdown"
)

func docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "docs FILE...",
		Short: "Generate Markdown documentation of CustomResourceDefinitions",
		Long: `Generate Markdown documentation of CustomResourceDefinitions: versions, fields with their
types, defaults, bounds and rules, printer columns, subresources, and a valid example of
each version.

A FILE can be a folder of files, or - for standard input. Other objects are skipped. The
exit code is 3 if a file cannot be read or no file has a CustomResourceDefinition.`,
		Example: `  anykind crd docs config/crd > docs/api.md
  kubectl get crd crontabs.example.com -o yaml | anykind crd docs -`,
		Args: someArguments("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			definitions, err := check.Definitions(args, cmd.InOrStdin())
			switch {
			case err != nil:
				return unsureError{err}
			case len(definitions) == 0:
				return unsureError{fmt.Errorf("no CustomResourceDefinitions in %v", args)}
			}
			examples, err := examplesOf(cmd, definitions)
			if err != nil {
				return unsureError{err}
			}
			return markdown.Write(cmd.OutOrStdout(), definitions, func(d *v1.CustomResourceDefinition, version string) map[string]any {
				return examples[d.Spec.Group+"/"+version+" "+d.Spec.Names.Kind]
			})
		},
	}
}

// examplesOf generates an example of each served version, by apiVersion and kind, and reports versions
// without one.
func examplesOf(cmd *cobra.Command, definitions []*v1.CustomResourceDefinition) (map[string]object.Tree, error) {
	var candidates []object.Tree
	key := func(t object.Tree) string { return object.APIVersion(t) + " " + object.Kind(t) }
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				candidates = append(candidates, example.Of(d, v)...)
			}
		}
	}
	accepted, err := check.Accepts(cmd.Context(), definitions, candidates)
	if err != nil {
		return nil, err
	}
	all := map[string]object.Tree{}
	for i, t := range candidates {
		if accepted[i] && all[key(t)] == nil {
			all[key(t)] = t
		}
	}
	said := map[string]bool{}
	for _, t := range candidates {
		if all[key(t)] == nil && !said[key(t)] {
			said[key(t)] = true
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: no generated example is valid; the page has no example\n", key(t))
		}
	}
	return all, nil
}
