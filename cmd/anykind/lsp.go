package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/lsp"
	"github.com/anykind/anykind/internal/server"
)

func lspCommand() *cobra.Command {
	w := workspace{Workspace: &check.Workspace{Options: check.Options{AllowPrivileged: true}}}
	c := &cobra.Command{
		Use:   "lsp",
		Short: "Run a language server for manifests on standard input and output",
		Long: `Run a language server for manifests in YAML and JSON, on standard input and output. It
shows the errors that a server would answer as you type, at their place; completes fields,
enum values, apiVersion and kind; and shows the documentation of a field with its default,
its bounds and its rules.

It knows all built-in kinds, and the kinds of all CustomResourceDefinitions below the
folder that the editor has open, also while you edit one.`,
		Example: `  anykind lsp
  anykind lsp --crds ~/catalog`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer func() { _ = w.Close(context.WithoutCancel(cmd.Context())) }()
			s := lsp.Server{Workspace: &w, Version: server.BuildVersion().Anykind, Delay: 150 * time.Millisecond}
			return s.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.Flags().StringSliceVar(&w.Definitions, "crds", nil, "further files and folders with CustomResourceDefinitions")
	c.Flags().Var(&w.Options.RuntimeConfig, "runtime-config", "built-in versions and resources to enable or disable, as for anykind serve")
	c.Flags().StringSliceVar(&w.Options.Gates.Emulated, "emulated-version", nil, "release of Kubernetes that validates the objects: "+gate.Oldest.String()+" to "+gate.Current.String())
	return c
}

// workspace shows check.Workspace to the language server.
type workspace struct{ *check.Workspace }

// Check returns the problems and the warnings of all objects in a text.
func (w *workspace) Check(ctx context.Context, text string) ([]lsp.Problem, error) {
	results, err := w.Workspace.Check(ctx, text)
	if err != nil {
		return nil, err
	}
	var out []lsp.Problem
	for i := range results {
		r := &results[i]
		if r.Verdict == check.Accepted || r.Verdict == check.Passed {
			r.Problems = nil
		}
		if len(r.Problems) == 0 && (r.Verdict == check.Refused || r.Verdict == check.Unknown) {
			r.Problems = []check.Problem{{Line: r.Line, Column: 1, Message: r.Message}}
		}
		for n, p := range slices.Concat(r.Problems, r.Warnings) {
			// A definition of another file has the place of that file.
			if r.File == "" || r.File == "stdin" {
				out = append(out, problem(r, p, n >= len(r.Problems)))
			}
		}
	}
	return out, nil
}

func problem(r *check.Result, p check.Problem, warning bool) lsp.Problem {
	message := p.Message
	if p.Field != "" {
		message = p.Field + ": " + message
	}
	return lsp.Problem{Line: cmp.Or(p.Line, r.Line), Column: max(1, p.Column), Warning: warning, Message: message}
}
