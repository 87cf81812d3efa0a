package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/infer"
)

// inferAll generates the definitions, checks them and the samples, and writes them.
func inferAll(cmd *cobra.Command, f *inferFlags, args []string) error {
	var plain *check.Plain
	if f.kind != "" && f.group != "" {
		plain = &check.Plain{APIVersion: f.group + "/" + f.version, Kind: f.kind}
	}
	samples, err := check.FindSamples(args, cmd.InOrStdin(), plain)
	if err != nil {
		return unsureError{err}
	}
	var results []infer.Result
	if f.schema != "" {
		results, err = f.fromSchema(cmd)
	} else {
		results, err = f.fromSamples(cmd, samples)
	}
	if err != nil {
		return unsureError{err}
	}
	var definitions []*v1.CustomResourceDefinition
	for _, r := range results {
		definitions = append(definitions, r.Definition)
	}
	bar := newBar(cmd.ErrOrStderr(), "checked")
	report, err := check.Verify(cmd.Context(), definitions, samples, check.Options{Progress: bar.show})
	bar.clear()
	if err != nil {
		return unsureError{err}
	}
	if f.schema != "" && len(args) > 0 && report.Summary.Objects == 0 {
		return unsureError{fmt.Errorf("no sample has the kind %s of the group %s", definitions[0].Spec.Names.Kind, f.group)}
	}
	if len(report.Results) > 0 {
		if err := report.WriteText(cmd.ErrOrStderr()); err != nil {
			return err
		}
		return verdictOf(report.Summary)
	}
	return f.write(cmd, results)
}

// fromSamples generates a definition of each kind.
func (f *inferFlags) fromSamples(cmd *cobra.Command, samples *check.Samples) (all []infer.Result, err error) {
	var seen infer.Samples
	passedOver, read := 0, 0
	bar := newBar(cmd.ErrOrStderr(), "read")
	err = samples.Each(func(t object.Tree) error {
		read++
		bar.show(read, 0)
		if f.kind != "" && object.Kind(t) != f.kind {
			passedOver++
			return nil
		}
		err := seen.Add(t)
		if errors.Is(err, infer.ErrBuiltIn) {
			passedOver++
			return nil
		}
		return err
	})
	bar.clear()
	kinds := seen.Kinds()
	switch {
	case err != nil:
		return nil, err
	case len(kinds) == 0 && passedOver > 0:
		return nil, fmt.Errorf("no samples: %d objects are of built-in kinds, of groups that are no domain, or not of --kind", passedOver)
	case len(kinds) == 0:
		return nil, errors.New("no objects; documents without apiVersion and kind need --group and --kind")
	case len(kinds) > 1 && (f.names.Plural+f.names.Singular != "" || len(f.names.ShortNames) > 0):
		return nil, fmt.Errorf("names are set, but the samples have %d kinds: choose one with --kind", len(kinds))
	}
	for _, kind := range kinds {
		all = append(all, seen.Definition(kind, infer.Options{MinSamples: f.minimum, Scope: v1.ResourceScope(f.scope), Names: f.names}))
	}
	if passedOver > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "skipped objects of other kinds: %d\n", passedOver)
	}
	return all, nil
}
