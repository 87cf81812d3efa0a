// Package anykind runs a Kubernetes API server inside a Go program or test. It serves
// CustomResourceDefinitions and their objects, for any kind, without a cluster, a second
// process or a download.
//
//	srv, err := anykind.Start(ctx, anykind.Options{})
//	if err != nil {
//		return err
//	}
//	defer srv.Close()
//	config, err := clientcmd.RESTConfigFromKubeConfig(srv.Kubeconfig())
//
// Use client-go, controller-runtime or kubectl with config, as with any cluster. A server
// starts in milliseconds, listens on a port of its own and shares nothing with other servers,
// so every test can have one.
//
// The exported API uses only types of the standard library. Programs choose their own client
// and its version.
package anykind

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/app"
)

// Options of a Server. The zero value serves what is in memory on a free port of
// 127.0.0.1.
type Options struct {
	// Dir is a directory that keeps objects and credentials; it is made if it
	// does not exist, and used by one Server at a time. Empty keeps everything
	// in memory.
	Dir string
	// Address is host:port to listen on. Empty is a free port of 127.0.0.1.
	Address string
	// DisableAdmissionPlugins names admission plugins, as Kubernetes does, that
	// must not run. Without NamespaceLifecycle objects can be created in
	// namespaces that do not exist.
	DisableAdmissionPlugins []string
	// RuntimeConfig turns versions and resources of the built-in kinds on and off, by
	// their names, as --runtime-config of kube-apiserver does: "api/beta": "true".
	RuntimeConfig map[string]string
	// AllowPrivileged lets containers be privileged, as --allow-privileged of
	// kube-apiserver does.
	AllowPrivileged bool
	// MaxObjectBytes is how large an object may be as it is stored, as JSON. Zero is
	// 1,564,672 bytes, what fits a request of etcd, so that objects fit a cluster.
	MaxObjectBytes int
	// Log gets what somebody who looks after the server would want to know. Nil
	// logs nothing.
	Log *slog.Logger
}

// A Server is a running API server.
type Server struct {
	app  *app.App
	once sync.Once
	err  error // of stopping
}

// Start starts a Server and returns when it serves. ctx bounds the start only:
// the Server runs until it is stopped.
func Start(ctx context.Context, o Options) (*Server, error) {
	a, err := app.Start(ctx, app.Options{
		Dir: o.Dir, Address: o.Address, Log: o.Log, MaxObjectBytes: o.MaxObjectBytes,
		Admission: app.Admission{Disable: o.DisableAdmissionPlugins}, RuntimeConfig: o.RuntimeConfig,
		AllowPrivileged: o.AllowPrivileged,
		Authentication:  app.Authentication{FrontProxy: app.FrontProxy{}.OrOwn()},
	})
	if err != nil {
		return nil, err
	}
	return &Server{app: a}, nil
}

// URL is where the Server is: https and an address of this machine.
func (s *Server) URL() string { return s.app.URL() }

// CA returns the certificates, as PEM, by which a client trusts the Server.
func (s *Server) CA() []byte { return s.app.CA() }

// Kubeconfig returns a kubeconfig of an administrator, who may do everything. It
// refers to no other file.
func (s *Server) Kubeconfig() []byte { return s.app.Kubeconfig() }

// Failed yields an error if the Server can no longer serve, because the disk
// does not take writes for instance. It is to be stopped then.
func (s *Server) Failed() <-chan error { return s.app.Failed() }

// Stop stops the Server: it takes no more requests, ends watches, answers what is
// under way, and closes its store. When ctx ends before that, the requests that
// are left are cut off. When Stop returns, nothing of the Server is left. It may
// be called again, and then only waits.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() { s.err = s.app.Stop(ctx) })
	return s.err
}

// closeTime is how long Close lets requests finish.
const closeTime = 5 * time.Second

// Close is Stop with a few seconds' patience.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.Stop(ctx)
}
