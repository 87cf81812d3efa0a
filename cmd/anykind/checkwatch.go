package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/check"
)

// follow checks until the command is interrupted.
func (f *checkFlags) follow(cmd *cobra.Command, args []string) error {
	ctx, restore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	w := check.Watch{Paths: f.paths(args), Options: f.Options, Out: cmd.OutOrStdout(), Check: func(ctx context.Context, o check.Options) (*check.Report, error) {
		return f.with(o).report(ctx, args, nil)
	}}
	return w.Run(ctx)
}

// with returns the flags with other options.
func (f *checkFlags) with(o check.Options) *checkFlags {
	g := *f
	g.Options = o
	return &g
}
