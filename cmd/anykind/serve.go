package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/app/flags"
	"github.com/anykind/anykind/internal/store/kv"
)

// drainTime limits requests in progress after the signal to stop.
const drainTime = 30 * time.Second

func serveCommand(started time.Time) *cobra.Command {
	var f flags.Serve
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the API server",
		Long: `Run the API server until SIGTERM or SIGINT.

By default, the server stores objects in ./anykind-data and listens on 127.0.0.1:6443. At
its first start it generates certificates and the administrator's kubeconfig there.

SIGTERM or SIGINT ends watches, completes requests in progress and closes the store. A
second signal ends the process immediately.`,
		Example: `  anykind serve
  anykind serve --data-dir /var/lib/anykind --bind-address 0.0.0.0
  anykind serve --in-memory --secure-port 0 --kubeconfig /tmp/kubeconfig`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.Options(f.Log(os.Stderr))
			if err != nil {
				return err
			}
			if o.Cluster.AuthenticationFile == "" {
				o.Authentication.FrontProxy = o.Authentication.FrontProxy.OrOwn()
			}
			return serve(untilStdin(cmd.Context(), f.StopWithStdin), o, func(a *app.App) { greet(cmd.OutOrStdout(), cmd.Root().DisplayName(), a, o, time.Since(started)) })
		},
	}
	f.Add(cmd.Flags())
	return cmd
}

// serve runs a server until ctx ends, a signal or a fatal error. It calls ready when the server serves.
func serve(ctx context.Context, o app.Options, ready func(*app.App)) error {
	told, restore := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer restore()
	context.AfterFunc(told, restore) // The next signal ends the process, also while it is starting.

	o.Flags = os.Args[1:]
	o.Fatal = func(err error) {
		fmt.Fprintln(os.Stderr, "anykind: the store has failed and the server exits:", err)
		os.Exit(exitFailed)
	}
	bound()
	calm := hurry()
	a, err := app.Start(told, o)
	calm()
	keepRoom()
	if err != nil && told.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ready(a)
	if err := notify(notifyReady); err != nil {
		return errors.Join(err, stop(a))
	}
	go giveBack(told)
	for {
		select {
		case <-told.Done():
			restore()
			_ = notify(notifyStopping) // it stops in any case
		case err = <-a.Failed():
		}
		var restored *kv.RestoredError
		again := told.Err() == nil && errors.As(err, &restored)
		if stopped := stop(a); !again {
			restore()
			return errors.Join(err, stopped)
		}
		o.Address, o.Undone = a.Address().String(), max(o.Undone, restored.Was)
		if a, err = restart(told, o); err != nil {
			return nil // a signal stopped it
		}
	}
}
