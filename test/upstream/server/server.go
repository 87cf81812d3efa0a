// Package server starts an anykind for one of Kubernetes' own tests, over the etcd of that
// test.
//
// It knows how anykind is started and where that etcd is. It knows nothing of the tests: their
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
	"github.com/anykind/anykind/internal/object/codec"
)

// A Server is an anykind that runs.
type Server struct {
	// Config is the administrator's.
	Config *rest.Config
	// Etcd is the URL of the store, and Prefix begins the keys there.
	Etcd   string
	Prefix string

	app *app.App
}

// Options say what a Server is.
type Options struct {
	// DisablePlugins are the admission plugins that are not to run.
	DisablePlugins []string
	// CBOR is the feature gate CBORServingAndStorage.
	CBOR bool
	// Prefix is what keys in etcd begin with. Servers of one Prefix, one after the
	// other, serve the same objects.
	Prefix string
}

const (
	// verbose is the variable that makes servers log every request.
	verbose = "ANYKIND_UPSTREAM_VERBOSE"
	// etcdURL is the variable that tests which look into etcd find it by.
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
		Offer:     codec.Offer{CBOR: o.CBOR},
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
	// The tests are not about how often a client may ask.
	s.Config.QPS = -1
	return s, nil
}

// Stop stops the Server at once: watches that a test left open are cut off.
func (s *Server) Stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.app.Stop(ctx)
}
