package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/server"
)

// apiServerCommand is the program under the name kube-apiserver, for suites that start one.
func apiServerCommand(started time.Time) *cobra.Command {
	var f flags.APIServer
	cmd := &cobra.Command{
		Use:   "kube-apiserver",
		Short: "Run anykind in place of kube-apiserver",
		Long: `Run anykind in place of kube-apiserver, with the flags of kube-apiserver. The log names
flags without effect.

The server stores objects in the etcd of --etcd-servers. If that is anykind under the name
etcd, the server stores them in memory until it exits.

Controllers of kube-controller-manager do not run, as in kube-apiserver. To run them, set
the environment variable ` + flags.ControllersVariable + `=*.`,
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
	return serve(context.Background(), o, func(a *app.App) {
		log.Info("serving", "url", a.URL(), "took", time.Since(started).Round(time.Millisecond))
	})
}
