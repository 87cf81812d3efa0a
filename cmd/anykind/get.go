package main

import (
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/backup"
)

func getCommand() *cobra.Command {
	var f openedFlags
	var format string
	cmd := &cobra.Command{
		Use:   "get KIND[/NAME]... --from FILE",
		Short: "Print objects of a backup, without a server",
		Long: `Print objects of FILE: a backup, the data directory of a stopped server, or a snapshot of
etcd. It is not changed. All objects of a KIND are printed, or one.`,
		Example: `  anykind get deployments --from nightly.db
  anykind get configmaps/settings --namespace default --from nightly.db -o yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || f.from.Open == "":
				return usageError{fmt.Errorf("%s needs kinds and --from FILE; see %[1]s --help", cmd.CommandPath())}
			case !slices.Contains(backup.Formats, format):
				return usageError{fmt.Errorf("--output is %q; want %s", format, strings.Join(backup.Formats, ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Objects = args
			ctx, restore := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer restore()
			return f.serve(ctx, func(from apiclient.Server) error {
				return backup.Get(ctx, from, f.Selection, format, cmd.OutOrStdout())
			})
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Objects", func(section *pflag.FlagSet) {
		section.StringVar(&f.from.Open, "from", "", "file or data directory with the objects")
		section.StringVarP(&format, "output", "o", "table", "format: "+strings.Join(backup.Formats, ", "))
		f.add(section)
	})
	return cmd
}
