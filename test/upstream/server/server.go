// Package server starts an anykind for one of Kubernetes' own tests, over the etcd of that test.
//
// It knows the flags of anykind and the address of that etcd. It knows nothing of the tests: their
// options come as the flags of kube-apiserver.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/gate"
)

// A Server is a running anykind.
type Server struct {
	// Config is the client configuration of the administrator.
	Config *rest.Config
	// Etcd is the URL of the store, and Prefix the prefix of its keys.
	Etcd   string
	Prefix string

	app *app.App
}

// Options are the options of a Server.
type Options struct {
	// DisablePlugins are the admission plugins to disable.
	DisablePlugins []string
	// CBOR is the feature gate CBORServingAndStorage.
	CBOR bool
	// Prefix is the prefix of keys in etcd. Servers with the same Prefix, one after the other, serve
	// the same objects.
	Prefix string
}

const (
	// verbose is the variable that makes servers log every request.
	verbose = "ANYKIND_UPSTREAM_VERBOSE"
	// etcdURL is the variable with the URL of etcd, for tests that read it directly.
	etcdURL = "KUBE_INTEGRATION_ETCD_URL"
)

// Start returns a Server that is ready.
func Start(o Options) (*Server, error) {
	etcd := os.Getenv(etcdURL)
	if etcd == "" {
		return nil, fmt.Errorf("%s does not say where etcd is: run this with make upstream", etcdURL)
	}
	level := slog.LevelWarn
	if os.Getenv(verbose) != "" {
		level = slog.LevelDebug
	}
	a, err := app.Start(context.Background(), app.Options{
		Etcd:      app.Etcd{Servers: []string{etcd}, Prefix: o.Prefix},
		Gates:     gate.With(map[gate.Name]bool{gate.CBORServingAndStorage: o.CBOR}),
		Admission: app.Admission{Disable: o.DisablePlugins},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return nil, err
	}
	s := &Server{app: a, Etcd: etcd, Prefix: o.Prefix}
	if s.Config, err = clientcmd.RESTConfigFromKubeConfig(a.Kubeconfig()); err != nil {
		s.Stop()
		return nil, fmt.Errorf("the kubeconfig of anykind: %w", err)
	}
	// The tests need no rate limit for clients.
	s.Config.QPS = -1
	return s, nil
}

// Stop stops the Server at once: it cuts off open watches.
func (s *Server) Stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.app.Stop(ctx)
}
