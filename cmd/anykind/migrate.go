package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/offline/migration"
)

type migrateFlags struct {
	server  serverFlags
	all     bool
	timeout time.Duration
}

func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate KIND...",
		Short: "Migrate stored objects to the storage version of their kind",
		Long: `Migrate stored objects to the storage version of their kind. The server rewrites all
objects that may be stored in another version, and removes the other versions from
status.storedVersions of the CustomResourceDefinition. A version that is no longer stored
can then be removed from the CustomResourceDefinition.

The command creates a StorageVersionMigration and shows its progress. The server runs the
migration: it continues after an interruption of the command or a restart of the server,
and the same command shows its progress again.

KIND is a plural, singular, kind or short name as for kubectl, with the group if needed
(crontabs.example.com). The exit code is 0 if all objects are stored in the storage
version, and 1 otherwise.`,
		Example: `  anykind migrate crontabs
  anykind migrate --all --kubeconfig anykind-data/admin.kubeconfig`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.all == (len(args) > 0) {
				return usageError{fmt.Errorf("%s needs kinds or --all; see %[1]s --help", cmd.CommandPath())}
			}
			return nil
		},
		ValidArgsFunction: f.server.asking(migratable),
		RunE:              func(cmd *cobra.Command, args []string) error { return migrate(cmd.OutOrStdout(), &f, args) },
	}
	cmd.Flags().SortFlags = false
	flags.AddSection(cmd.Flags(), "Migration", func(section *pflag.FlagSet) {
		section.BoolVar(&f.all, "all", false, "migrate all kinds with objects that may be stored in another version")
		section.DurationVar(&f.timeout, "timeout", 0, "timeout of the command, such as 10m; 0 for no timeout")
	})
	f.server.add(cmd.Flags())
	f.server.complete(cmd)
	return cmd
}

// migrate migrates the kinds that words name, one after the other. After an error it continues with
// the next kind.
func migrate(out io.Writer, f *migrateFlags, words []string) error {
	config, err := f.server.find()
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("not done after %v", f.timeout))
		defer cancel()
	}
	server := &migration.Server{Client: config.Client(), URL: config.URL}
	defer server.Client.CloseIdleConnections()
	kinds, err := server.Kinds(ctx, words)
	if err == nil && len(kinds) == 0 {
		fmt.Fprintln(out, "nothing to migrate")
	}
	progress := migration.NewProgress(out)
	for _, k := range kinds {
		if ctx.Err() == nil {
			err = errors.Join(err, server.Migrate(ctx, k, progress))
		}
	}
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w; the migration continues in the server: the same command shows its progress", context.Cause(ctx))
	}
	return err
}
