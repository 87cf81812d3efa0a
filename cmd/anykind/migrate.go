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
		Short: "Have a server store objects in the storage version of their kind",
		Long: `Have a server write again, in the storage version of their kind, all objects that
may be stored in another, and take the other versions out of status.storedVersions
of the CustomResourceDefinition. Then a version can be removed from it.

The server does it (a StorageVersionMigration); this command asks for it and shows
how far it is. It may be interrupted, and the server may be restarted: the migration
goes on where it was, and the command may be given again.

KIND is plural, singular, kind or short name, as kubectl takes it, with the group if
need be (crontabs.example.com). The exit code is 0 if all objects are stored in the
storage version now, and 1 if not, or if nobody knows.`,
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
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "all kinds of which objects may be stored in another version")
	flags.DurationVar(&f.timeout, "timeout", 0, "for how long to wait at most, such as 10m; 0 waits until it is done")
	f.server.add(flags)
	f.server.complete(cmd)
	return cmd
}

// migrate migrates the kinds that words mean, one after the other, and goes on with
// the next one after an error.
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
		fmt.Fprintln(out, "there is nothing to migrate")
	}
	progress := migration.NewProgress(out)
	for _, k := range kinds {
		if ctx.Err() == nil {
			err = errors.Join(err, server.Migrate(ctx, k, progress))
		}
	}
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w; what was asked for goes on in the server: the same command shows it again", context.Cause(ctx))
	}
	return err
}
