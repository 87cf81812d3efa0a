package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/backup"
)

type restoreFlags struct {
	server serverFlags
	opened openedFlags
	dryRun bool
}

func restoreCommand() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use:   "restore FILE KIND[/NAME]...",
		Short: "Apply objects of a backup to a running server",
		Long: `Apply objects of FILE to a running server. FILE is a backup, the data directory of a
stopped server, or a snapshot of etcd; it is not changed. All objects of a KIND are
applied, or one.

Apply sets the fields that the object had, and takes over the ownership of changed ones.
Fields that were added since then stay, and so does the status. A new object has a new
uid.`,
		Example: `  anykind restore nightly.db configmaps/settings --namespace default --dry-run
  anykind restore nightly.db crontabs roles rolebindings`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("%s needs a FILE and kinds; see %[1]s --help", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.opened.from.Open, f.opened.Objects = args[0], args[1:]
			return f.restore(cmd.OutOrStdout())
		},
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Restore", func(section *pflag.FlagSet) {
		section.BoolVar(&f.dryRun, "dry-run", false, "print the result for each object, and change nothing")
		f.opened.add(section)
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

func (f *restoreFlags) restore(out io.Writer) error {
	config, err := f.server.find()
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	to := apiclient.Server{Client: config.Client(), URL: config.URL}
	defer to.Client.CloseIdleConnections()
	suffix := ""
	if f.dryRun {
		suffix = " (dry run)"
	}
	return f.opened.serve(ctx, func(from apiclient.Server) error {
		return backup.Restore(ctx, from, to, f.opened.Selection, f.dryRun, func(object, result string) {
			fmt.Fprintf(out, "%s %s%s\n", object, result, suffix)
		})
	})
}
