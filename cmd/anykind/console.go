package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/server/console"
)

func consoleCommand() *cobra.Command {
	var server serverFlags
	var port int
	var quiet bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open a console for a server in the browser",
		Long: `Open a console in the browser: objects, changes, rights and documentation of any Kubernetes API server.

The console listens on 127.0.0.1, and sends requests with the credentials of the kubeconfig. Its link
is valid for one browser. Nothing is installed in the server.`,
		Example: `  anykind console
  anykind console --context staging --port 8001 --no-browser`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := server.chosen()
			if err != nil {
				return err
			}
			if _, err := kubeconfig.Find(chosen); err != nil {
				return err
			}
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				return err
			}
			local := console.NewLocal(listener.Addr(), chosen)
			local.Review = func(ctx context.Context, server *kubeconfig.Config, definition []byte, try bool) (any, error) {
				s := check.Server{Client: server.Client(), URL: server.URL}
				defer s.Client.CloseIdleConnections()
				return s.Review(ctx, definition, try)
			}
			link := local.Link()
			fmt.Fprintln(cmd.OutOrStdout(), link)
			if !quiet {
				defer browse(link)()
			}
			ctx, restore := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer restore()
			return serveUntil(ctx, listener, local)
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1 (default: a free one)")
	cmd.Flags().BoolVar(&quiet, "no-browser", false, "print the link only")
	server.add(cmd.Flags())
	server.complete(cmd)
	return cmd
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, on net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = s.Close() }) // watches have no end
	defer stopped()
	if err := s.Serve(on); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
