package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/offline/revision"
)

// checkGC trades memory for time: the process is short, and its garbage many times its heap.
const checkGC = 400

func (f *checkFlags) run(cmd *cobra.Command, args []string) error {
	f.Validation = string(f.validation)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(checkGC)
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

// report checks the files, or their changes.
func (f *checkFlags) report(ctx context.Context, args []string, in io.Reader) (*check.Report, error) {
	if f.since == "" {
		return check.Run(ctx, args, in, f.Options)
	}
	between, err := revision.Parse(f.since)
	if err != nil {
		return nil, usageError{fmt.Errorf("--since: %w", err)}
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	return check.Since(ctx, args, between, f.Options)
}
