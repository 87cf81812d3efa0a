package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/revision"
)

// checkGC trades memory for time: the process is short, and its garbage many times its heap.
const checkGC = 400

// validate checks the arguments against the flags.
func (f *checkFlags) validate(cmd *cobra.Command, args []string) error {
	stdin := slices.Contains(args, "-")
	switch {
	case f.since != "" && len(f.Old) > 0:
		return usageError{errors.New("--since and --old are mutually exclusive: the old objects come from git")}
	case f.since != "" && stdin:
		return usageError{errors.New("--since compares files of a repository, and standard input has no earlier revision: name files or folders")}
	case f.watch && stdin:
		return usageError{errors.New("--watch follows files, and standard input has none: name files or folders")}
	case f.watch && (f.diff || f.output.form != "text"):
		return usageError{errors.New("--watch prints text: leave out --output and --diff")}
	case f.since == "":
		return someArguments("a file")(cmd, args)
	}
	return nil
}

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	f.Validation = string(f.validation)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(checkGC)
	}
	if f.catalog {
		c, err := userCatalog()
		if err == nil {
			f.Published, err = c.Published()
		}
		if err != nil {
			return unsureError{err}
		}
	}
	if f.watch {
		return f.follow(cmd, args)
	}
	bar := newBar(cmd.ErrOrStderr(), "checked")
	f.Progress = bar.show
	report, err := f.report(cmd.Context(), args, cmd.InOrStdin())
	bar.clear()
	switch {
	case err != nil:
		return unsureError{err}
	case len(report.Results) == 0 && f.since == "":
		return unsureError{fmt.Errorf("no objects in %v", args)}
	}
	if f.diff {
		if err := report.WriteDiff(cmd.OutOrStdout()); err != nil {
			return err
		}
		err = report.WriteText(cmd.ErrOrStderr())
	} else {
		err = writeReport(cmd, report, &f.output)
	}
	if err != nil {
		return err
	}
	return verdictOf(report.Summary)
}

// paths returns the files and folders of the command.
func (f *checkFlags) paths(args []string) []string {
	if len(args) == 0 {
		return []string{"."}
	}
	return args
}

// report checks the files, or their changes.
func (f *checkFlags) report(ctx context.Context, args []string, in io.Reader) (*check.Report, error) {
	if f.since == "" {
		return check.Run(ctx, args, in, f.Options)
	}
	between, err := revision.Parse(f.since)
	if err != nil {
		return nil, usageError{fmt.Errorf("--since: %w", err)}
	}
	return check.Since(ctx, f.paths(args), between, f.Options)
}
