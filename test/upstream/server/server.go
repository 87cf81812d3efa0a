// Package server starts an anykind for one test of Kubernetes' own, and lets the
// test look into its store as if it were etcd.
//
// It knows how anykind is started and what its store looks like from outside. It
// knows nothing of the tests: what they ask for comes as the flags they would have
// given kube-apiserver.
package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/anykind/anykind/internal/app"
)

// A Server is an anykind that runs.
type Server struct {
	// Config is the administrator's.
	Config *rest.Config
	// Etcd is where the store answers to etcd's protocol, and Prefix begins its
	// keys there.
	Etcd   *url.URL
	Prefix string

	app *app.App
}

// Options say what a Server is.
type Options struct {
	// DisablePlugins are the admission plugins that are not to run.
	DisablePlugins []string
	// Prefix is what keys begin with, seen from outside. Servers of one Prefix,
	// one after the other, have one store.
	Prefix string
}

// verbose is the variable that makes servers log every request.
const verbose = "ANYKIND_UPSTREAM_VERBOSE"

// Start returns a Server that is ready.
func Start(o Options) (*Server, error) {
	etcd, err := theEtcd()
	if err != nil {
		return nil, err
	}
	level := slog.LevelWarn
	if os.Getenv(verbose) != "" {
		level = slog.LevelDebug
	}
	a, err := app.Start(context.Background(), app.Options{
		Backend:                 etcd.store(o.Prefix),
		DisableAdmissionPlugins: o.DisablePlugins,
		Log:                     slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return nil, err
	}
	s := &Server{app: a, Etcd: etcd.url, Prefix: o.Prefix}
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
