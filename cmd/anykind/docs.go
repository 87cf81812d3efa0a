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
		Short: "Write the documentation of CustomResourceDefinitions as Markdown",
		Long: `Write the documentation of CustomResourceDefinitions as Markdown: versions, fields with
their types, defaults, bounds and rules, columns, subresources, and an example of each
version that a server would accept.

A FILE may be a folder, or - for standard input. Other objects are passed over. The exit
code is 3 if a file cannot be read, or there is no definition.`,
		Example: `  anykind crd docs config/crd > docs/api.md
  kubectl get crd crontabs.example.com -o yaml | anykind crd docs -`,
		Args: someArguments("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			definitions, err := check.Definitions(args, cmd.InOrStdin())
			switch {
			case err != nil:
				return unsureError{err}
			case len(definitions) == 0:
				return unsureError{fmt.Errorf("there is no CustomResourceDefinition in %v", args)}
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

// examplesOf makes an example of each version that is served, by apiVersion and kind, and says of which
// it found none.
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
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: no example is accepted; the page has none\n", key(t))
		}
	}
	return all, nil
}
