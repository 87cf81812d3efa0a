package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/history"
)

func blameCommand() *cobra.Command {
	var f objectFlags
	cmd := &cobra.Command{
		Use:   "blame KIND NAME",
		Short: "Print an object with the last change of each field",
		Long: `Print an object as YAML, and beside each line the revision, the user and the time of the
change that last set the field. Fields that are older than the history have a ^. A deleted
object is printed as it was.

The server must keep a history (anykind serve --history=30d). Of another server, the
command shows the field managers and times of metadata.managedFields.`,
		Example: `  anykind blame deployment web
  anykind blame configmap/settings -n prod`,
		Args:              oneObject,
		ValidArgsFunction: f.completeObject(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.useOne(args, func(ctx context.Context, c history.Client, o history.Object) error {
				return blame(ctx, cmd, c, o)
			})
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Object", f.add)
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

func blame(ctx context.Context, cmd *cobra.Command, c history.Client, o history.Object) error {
	list, err := c.Changes(ctx, o, 0, "")
	var lines []history.Line
	switch {
	case errors.Is(err, history.ErrNone):
		now, err := c.Present(ctx, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%v; the margin comes from managedFields\n", history.ErrNone)
		if lines, err = history.BlameManaged(now); err != nil {
			return err
		}
	case err != nil:
		return err
	case len(list.Items) == 0: // older than the history
		now, err := c.Present(ctx, o)
		if err != nil {
			return err
		}
		lines = history.Blame([]history.Change{{Type: history.Deleted, Before: now}})
	default:
		lines = history.Blame(list.Items)
	}
	return history.WriteBlame(cmd.OutOrStdout(), lines)
}
