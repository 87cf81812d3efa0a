package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/fork"
	"github.com/anykind/anykind/internal/offline/history"
)

func forkMergeCommand() *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use:   "merge NAME",
		Short: "Bring the changes of a fork into its server",
		Long: `Bring the changes of a fork into its server. Each field that has changed in the fork gets the
value of the fork. A field that has changed in the server, too, is a conflict: nothing is
written, unless --force overwrites it. Objects of the fork are created with a new uid, and
Services with new addresses and ports; deleted objects are deleted.

Left out are changes of the status, objects with a controller as their owner, Events,
Leases, EndpointSlices and other objects that a server makes by itself.

The command prints the result of a dry run of the server. With --yes it then writes. A
change in between fails the write.`,
		Example: `  anykind fork merge upgrade
  anykind fork merge upgrade --yes`,
		Args:              forkName,
		ValidArgsFunction: f.completeFork(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(func(ctx context.Context, c history.Client, _ string) error {
				forks := fork.Of(c.Server)
				steps, left, err := forks.Merge(ctx, args[0], f.force)
				if err != nil {
					return err
				}
				if len(left) > 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "left out, because controllers make or remove them: %s\n", strings.Join(left, "; "))
				}
				c = history.Client{Server: forks.Server, Manager: fork.Manager}
				return f.undo(ctx, cmd, c, steps)
			})
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Merge", func(section *pflag.FlagSet) {
		section.BoolVar(&f.force, "force", false, "overwrite fields that have changed in the server, too")
		section.BoolVar(&f.yes, "yes", false, "write, after the dry run")
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

// compareFork shows the changes in a fork.
func (f *momentFlags) compareFork(cmd *cobra.Command) error {
	return f.use(func(ctx context.Context, c history.Client, _ string) error {
		changed, err := fork.Of(c.Server).Changes(ctx, f.fork)
		if err != nil {
			return err
		}
		return history.WriteChanged(cmd.OutOrStdout(), changed)
	})
}
