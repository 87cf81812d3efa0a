package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/app/fakeetcd"
)

// etcdCommand is the program under the name etcd, for suites that start one before a kube-apiserver.
func etcdCommand() *cobra.Command {
	var clients []string
	var version bool
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run anykind in place of etcd",
		Long: `Run anykind in place of etcd. It stores nothing. If anykind under the name kube-apiserver
finds this program at --etcd-servers, it stores objects in memory.

The program listens at --listen-client-urls. It ignores the other flags of etcd.`,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				fmt.Fprintln(cmd.OutOrStdout(), "etcd Version:", fakeetcd.Version)
				return nil
			}
			return serveFakeEtcd(clients)
		},
	}
	cmd.Flags().StringSliceVar(&clients, "listen-client-urls", []string{"http://localhost:2379"}, "http URLs to listen on")
	cmd.Flags().BoolVar(&version, "version", false, "print the version of etcd and exit")
	return cmd
}

// serveFakeEtcd answers until a signal.
func serveFakeEtcd(urls []string) error {
	told, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer restore()
	fake := fakeetcd.Serving()
	defer fake.Close()
	failed := make(chan error, len(urls))
	for _, at := range urls {
		u, err := url.Parse(at)
		if err != nil || u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("--listen-client-urls: %q: want a URL such as http://127.0.0.1:2379, without TLS: this program stores nothing", at)
		}
		listener, err := new(net.ListenConfig).Listen(told, "tcp", u.Host)
		if err != nil {
			return err
		}
		go func() { failed <- fake.Serve(listener) }()
	}
	select {
	case <-told.Done():
		return nil
	case err := <-failed:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}
