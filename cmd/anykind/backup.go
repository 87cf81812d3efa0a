package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/offline/backup"
)

func backupCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Save a copy of the store of a running server",
		Long: `Save a copy of the store of a running server in FILE: all objects at one revision,
verified. An existing FILE is replaced when the copy is complete. Writes go on meanwhile.
A store in etcd has snapshots of its own (etcdctl snapshot save).

anykind serve --open FILE serves the copy read-only. As anykind.db in the data directory of a
stopped server, it replaces the objects of that server. The copy has no certificates and no
kubeconfig. Encrypted objects stay encrypted.`,
		Example: `  anykind backup nightly.db --kubeconfig anykind-data/admin.kubeconfig
  anykind serve --open nightly.db --data-dir /tmp/opened`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return save(cmd.OutOrStdout(), &f, args[0]) },
	}
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	f.complete(cmd)
	return cmd
}

func save(out io.Writer, f *serverFlags, file string) error {
	config, err := f.find()
	if err != nil {
		return err
	}
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	client := config.Client()
	defer client.CloseIdleConnections()
	saved, err := backup.Save(ctx, client, config.URL, file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s has %d objects at revision %d\n", file, saved.Objects, saved.Revision)
	return err
}

// oneFile accepts one argument.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s needs one FILE; see %[1]s --help", cmd.CommandPath())}
	}
	return nil
}
