package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/history"
)

func forgetCommand() *cobra.Command {
	var f objectFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget KIND NAME",
		Short: "Remove an object from the history",
		Long: `Remove the past of an object from the history of the server, such as that of a Secret with
a leaked password. The present object stays. This cannot be undone, so the command only
counts the changes unless --yes is set.`,
		Example: `  anykind forget secret database -n prod
  anykind forget secret database -n prod --yes`,
		Args:              oneObject,
		ValidArgsFunction: f.completeObject(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.useOne(args, func(ctx context.Context, c history.Client, o history.Object) error {
				if yes {
					if err := c.Forget(ctx, o); err != nil {
						return err
					}
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has no past\n", o.Title())
					return err
				}
				list, err := c.Changes(ctx, o, 0, "")
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "changes of %s in the history: %d; --yes removes them\n", o.Title(), len(list.Items))
				return err
			})
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Object", func(section *pflag.FlagSet) {
		section.BoolVar(&yes, "yes", false, "remove the object from the history")
		f.add(section)
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}
