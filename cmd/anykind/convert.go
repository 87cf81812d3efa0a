package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/conversion"
)

// convertFlags are the flags of anykind convert.
type convertFlags struct {
	version     string
	definitions []string
	output      outputFlag
}

func convertCommand() *cobra.Command {
	var f convertFlags
	c := &cobra.Command{
		Use:   "convert FILE...",
		Short: "Convert custom objects to another version by rules, offline",
		Long: `Convert the custom objects in YAML or JSON files to another version of their kind, as a
server with the same conversion rules would.

The definitions and their rules (CRDConversionConfigs, or the annotation
anykind.dev/conversion) come from the files of --crds, or stand among the objects. A
FILE can be a folder of files, or - for standard input.

Exit codes: 0 if all objects are converted; 1 if an object has a value that the rules do
not allow, or if rules are not valid.`,
		Example: `  anykind convert widgets.yaml --to v2 --crds config/crd
  kubectl get widgets -o yaml | anykind convert - --to v1beta1 --crds crd.yaml,rules.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.version == "" && len(args) > 0 {
				return usageError{fmt.Errorf("%s needs --to VERSION; see %[1]s --help", cmd.CommandPath())}
			}
			return someArguments("a file")(cmd, args)
		},
		ValidArgsFunction: completeManifests(anyNumber),
		RunE:              func(cmd *cobra.Command, args []string) error { return convert(cmd, &f, args) },
	}
	c.Flags().StringVar(&f.version, "to", "", "version of the results")
	c.Flags().StringSliceVar(&f.definitions, "crds", nil, "files and folders with CustomResourceDefinitions and CRDConversionConfigs")
	addOutput(c.Flags(), &f.output, "output format: yaml or json", "yaml", "json")
	c.AddCommand(convertServeCommand())
	return c
}

func convert(cmd *cobra.Command, f *convertFlags, args []string) error {
	var in []byte
	if slices.Contains(args, "-") {
		var err error
		if in, err = io.ReadAll(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	all, err := check.Convertible(append(slices.Clone(f.definitions), args...), bytes.NewReader(in))
	if err != nil {
		return err
	}
	objects, err := check.FindSamples(args, bytes.NewReader(in), nil)
	if err != nil {
		return err
	}
	definitions, err := conversion.New(all)
	if err != nil {
		return err
	}
	for _, text := range definitions.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "Warning:", text)
	}
	converted := 0
	err = definitions.All(cmd.Context(), objects, f.version, func(t object.Tree) error {
		converted++
		text := append(object.AppendJSON(nil, t), '\n')
		if f.output.form == "yaml" {
			var err error
			if text, err = yaml.JSONToYAML(text); err != nil {
				return err
			}
			if converted > 1 {
				text = append([]byte("---\n"), text...)
			}
		}
		_, err := cmd.OutOrStdout().Write(text)
		return err
	})
	if err == nil && converted == 0 {
		return fmt.Errorf("there are no objects in %v", args)
	}
	return err
}
