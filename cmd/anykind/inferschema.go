package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/schema/crd/infer"
	"github.com/anykind/anykind/internal/schema/crd/translate"
)

// fromSchema generates a definition from the JSON schema.
func (f *inferFlags) fromSchema(cmd *cobra.Command) ([]infer.Result, error) {
	in := cmd.InOrStdin()
	if f.schema != "-" {
		file, err := os.Open(f.schema)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	document, _, err := codec.Decode(codec.YAML, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.schema, err)
	}
	made, err := translate.Schema(document, f.goType)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.schema, err)
	}
	kind := schema.GroupKind{Group: f.group, Kind: f.kind}
	if kind.Kind == "" {
		kind.Kind = made.Type
	}
	if kind.Kind == "" {
		return nil, fmt.Errorf("%s has no type name: name the kind with --kind", f.schema)
	}
	r := infer.OfSchema(kind, f.version, made.Schema, infer.Options{Scope: v1.ResourceScope(f.scope), Names: f.names})
	for _, n := range made.Notes {
		r.Notes = append(r.Notes, infer.Note{Version: f.version, Path: n.Path, Text: n.Text})
	}
	return []infer.Result{r}, nil
}

// write writes definitions to standard output, and notes that they do not contain to standard error.
func (f *inferFlags) write(cmd *cobra.Command, results []infer.Result) error {
	for i, r := range results {
		for _, n := range r.Notes {
			if !n.Hint || f.output == "json" {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", r.Definition.Name, n)
			}
		}
		var err error
		switch {
		case f.output == "json":
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			err = e.Encode(r.Definition)
		case i > 0:
			if _, err = io.WriteString(cmd.OutOrStdout(), "---\n"); err == nil {
				err = r.Write(cmd.OutOrStdout())
			}
		default:
			err = r.Write(cmd.OutOrStdout())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
