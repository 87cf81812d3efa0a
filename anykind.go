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
// starts in milliseconds, listens on its own port and shares no state with other servers,
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
	"github.com/anykind/anykind/internal/object/gate"
)

// Options of a Server. The zero value stores objects in memory and listens on a free port of
// 127.0.0.1.
type Options struct {
	// Dir is the directory for objects and credentials; created if missing. Only one Server can use
	// it at a time. Empty stores everything in memory.
	Dir string
	// Address is the host:port to listen on. Empty is a free port of 127.0.0.1.
	Address string
	// DisableAdmissionPlugins lists admission plugins to disable, by their Kubernetes names.
	// Without NamespaceLifecycle, objects can be created in namespaces that do not exist.
	DisableAdmissionPlugins []string
	// RuntimeConfig enables and disables built-in versions and resources, as --runtime-config of
	// kube-apiserver: "api/beta": "true".
	RuntimeConfig map[string]string
	// Version is the release of Kubernetes that the Server emulates, such as "1.35", as --emulated-version of
	// kube-apiserver. Empty is the release that the program implements.
	Version string
	// FeatureGates has values of feature gates, as --feature-gates of kube-apiserver.
	FeatureGates map[string]bool
	// AllowPrivileged allows privileged containers, as --allow-privileged of kube-apiserver.
	AllowPrivileged bool
	// MaxObjectBytes is the maximum size of an object as stored JSON. Zero is 1,564,672 bytes,
	// which fits a request of etcd, so that objects fit a cluster.
	MaxObjectBytes int
	// Log receives the log of the server. Nil logs nothing.
	Log *slog.Logger
}

// A Server is a running API server.
type Server struct {
	app  *app.App
	once sync.Once
	err  error // of Stop
}

// Start starts a Server and returns when it serves. ctx limits the start only: the Server runs
// until Stop.
func Start(ctx context.Context, o Options) (*Server, error) {
	gates, err := gate.Of(o.Version, o.FeatureGates)
	if err != nil {
		return nil, err
	}
	a, err := app.Start(ctx, app.Options{
		Dir: o.Dir, Address: o.Address, Log: o.Log, MaxObjectBytes: o.MaxObjectBytes,
		Admission: app.Admission{Disable: o.DisableAdmissionPlugins}, RuntimeConfig: o.RuntimeConfig, Gates: gates,
		AllowPrivileged: o.AllowPrivileged,
		Authentication:  app.Authentication{FrontProxy: app.FrontProxy{}.OrOwn()},
	})
	if err != nil {
		return nil, err
	}
	return &Server{app: a}, nil
}

// URL returns the https URL of the Server, with an address of this host.
func (s *Server) URL() string { return s.app.URL() }

// CA returns the PEM bundle of CAs for the certificate of the Server.
func (s *Server) CA() []byte { return s.app.CA() }

// Kubeconfig returns the kubeconfig of an administrator with all rights. It refers to no other
// file.
func (s *Server) Kubeconfig() []byte { return s.app.Kubeconfig() }

// Failed yields an error if the Server can no longer serve, for example after a failed write to
// disk. Stop the Server then.
func (s *Server) Failed() <-chan error { return s.app.Failed() }

// Stop stops the Server: it rejects new requests, ends watches, completes requests in progress and
// closes the store. If ctx ends first, Stop aborts the remaining requests. When Stop returns, the
// Server has no goroutines and no open files. Further calls wait for the first one.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() { s.err = s.app.Stop(ctx) })
	return s.err
}

// closeTime limits requests in progress at Close.
const closeTime = 5 * time.Second

// Close is Stop with a timeout of a few seconds.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.Stop(ctx)
}
