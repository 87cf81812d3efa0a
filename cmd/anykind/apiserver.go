package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/server"
)

// apiServerCommand is the program under the name kube-apiserver, for whoever starts one.
func apiServerCommand(started time.Time) *cobra.Command {
	var f flags.APIServer
	cmd := &cobra.Command{
		Use:   "kube-apiserver",
		Short: "Serve the API in the place of kube-apiserver",
		Long: `Serve the API in the place of kube-apiserver. This is anykind: its flags are those of
kube-apiserver, and mean the same. Those that mean nothing here are accepted, and the log says so.

Objects are in the etcd of --etcd-servers. If that is anykind under the name etcd, they are in
memory, and gone when this program ends.

The controllers of kube-controller-manager do not run, so that nothing happens that does not with
a kube-apiserver: ` + flags.ControllersVariable + `=* runs them.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Version.Print {
				fmt.Fprintln(cmd.OutOrStdout(), "Kubernetes", cmp.Or(f.Version.Serve, server.BuildVersion().GitVersion))
				return nil
			}
			return serveAsAPIServer(&f, started)
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

// serveAsAPIServer serves until a signal.
func serveAsAPIServer(f *flags.APIServer, started time.Time) error {
	if len(f.EtcdServers()) == 0 {
		return errors.New("--etcd-servers must be specified")
	}
	log := f.Log(os.Stderr)
	o, err := f.Options(log, os.Getenv(flags.ControllersVariable))
	if err != nil {
		return err
	}
	return serve(o, func(a *app.App) {
		log.Info("serving", "url", a.URL(), "took", time.Since(started).Round(time.Millisecond))
	})
}
