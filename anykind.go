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
)

// Options configures a Server. The zero value keeps objects in memory and listens on a free port
// of 127.0.0.1.
type Options struct {
	// Dir is the directory for objects and credentials; created if missing. One Server uses it at a
	// time. Empty keeps everything in memory.
	Dir string
	// Address is the host:port to listen on. Empty is a free port of 127.0.0.1.
	Address string
	// DisableAdmissionPlugins disables admission plugins by their Kubernetes names. Without
	// NamespaceLifecycle, objects can be created in missing namespaces.
	DisableAdmissionPlugins []string
	// RuntimeConfig enables and disables versions and resources of the built-in kinds, as
	// --runtime-config of kube-apiserver does: "api/beta": "true".
	RuntimeConfig map[string]string
	// AllowPrivileged allows privileged containers, as --allow-privileged of kube-apiserver does.
	AllowPrivileged bool
	// MaxObjectBytes limits the size of an object, stored as JSON. Zero is 1,564,672 bytes, the
	// limit of a request to etcd, so that every object can move to a cluster.
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

// Start starts a Server and returns when it serves. ctx bounds the start only: the Server runs until
// Stop or Close.
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

// URL returns the https URL of the Server, with an address of this machine.
func (s *Server) URL() string { return s.app.URL() }

// CA returns the CA certificates of the Server, as PEM.
func (s *Server) CA() []byte { return s.app.CA() }

// Kubeconfig returns a kubeconfig of a cluster administrator. It refers to no other file.
func (s *Server) Kubeconfig() []byte { return s.app.Kubeconfig() }

// Failed yields an error if the Server can no longer serve, for instance because a write to disk
// failed. The caller then stops the Server.
func (s *Server) Failed() <-chan error { return s.app.Failed() }

// Stop stops the Server: it accepts no new requests, ends watches, completes the requests in flight,
// and closes the store. When ctx ends first, the remaining requests are aborted. After Stop returns,
// no goroutine, connection or lock of the Server is left. A second call only waits for the first.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() { s.err = s.app.Stop(ctx) })
	return s.err
}

// closeTime limits the time that Close gives requests to finish.
const closeTime = 5 * time.Second

// Close is Stop with a timeout of a few seconds.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return s.Stop(ctx)
}
