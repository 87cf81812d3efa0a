// Package aggregate proxies requests to other API servers, as APIServices configure.
//
// An APIService that names a Service sends the paths of one version of a group to the API server
// behind that Service, its Backend. All other APIServices are local: they only order discovery.
// Services holds the content of all APIServices at one moment. Every request reads it; for
// requests that this server answers itself, that costs almost nothing.
//
// The package knows APIServices, connections to Backends, and how a request is forwarded: the
// user goes along in headers, which the Backend trusts because of a client certificate. It does
// not know the resources of Backends: internal/server/discovery and internal/server/openapi
// request those. Nor does it test whether a Backend is available:
// internal/server/aggregate/availability does, and writes the result to the APIService, where
// every server reads it.
package aggregate

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/front"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of an Aggregator. Cache and Kinds are required.
type Options struct {
	Cache *watchcache.Cache
	// Kinds are the built-in kinds, APIServices among them.
	Kinds *resource.Set
	// Catalog holds the kinds that this server serves. A version that is not in it is looked up
	// among the current APIServices; with a nil Catalog, no version is.
	Catalog *resource.Catalog
	// Dialer connects to Backends; a zero one if nil.
	Dialer *egress.Dialer
	// Certificate returns the current client certificate of this server as a front proxy, or nil.
	// Certificate may be nil: there is none.
	Certificate func() *tls.Certificate
	// Headers are the request headers of this server's front proxy. Neither these nor the
	// standard ones are forwarded from a client to a Backend.
	Headers authn.ProxyHeaders
	// Gates are the feature gates.
	Gates *gate.Set
	// Log is for operators; nil discards.
	Log *slog.Logger
}

// An Aggregator sends requests to other API servers.
type Aggregator struct {
	options  Options
	front    *front.Front
	follower *stored.Follower
	metrics  *Metrics
	now      atomic.Pointer[Services]

	known known

	mu    sync.Mutex
	pools map[poolKey]*pool
}

// New returns an Aggregator. It reads nothing until the first request.
func New(o Options) *Aggregator {
	if o.Dialer == nil {
		o.Dialer = &egress.Dialer{}
	}
	if o.Certificate == nil {
		o.Certificate = func() *tls.Certificate { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Aggregator{options: o, known: known{all: map[string]*Service{}}, pools: map[poolKey]*pool{}}
	a.front = &front.Front{Dialer: o.Dialer, Certificate: o.Certificate, Headers: o.Headers, UID: o.Gates.On(gate.RemoteRequestHeaderUID)}
	a.metrics = newMetrics(a.Services)
	a.now.Store(&Services{})
	a.follower = stored.Follow(o.Cache, o.Kinds, []schema.GroupResource{{Group: "apiregistration.k8s.io", Resource: "apiservices"}}, a.apply)
	return a
}

// Services returns the APIServices as the cache of this server has them, without a request to the
// store. If they cannot be read, it returns the previous ones.
func (a *Aggregator) Services(ctx context.Context) *Services {
	if err := a.follower.KeepUp(ctx); err != nil && ctx.Err() == nil {
		a.options.Log.Warn("APIServices cannot be read; the previous ones stay in effect", "error", err)
	}
	return a.now.Load()
}

// Fresh returns Services with every write that was acknowledged before the request of ctx
// arrived.
func (a *Aggregator) Fresh(ctx context.Context) (*Services, error) {
	err := a.follower.Refresh(ctx)
	return a.now.Load(), err
}

// Committed returns once a write of an APIService at revision is in force in this server.
func (a *Aggregator) Committed(ctx context.Context, revision int64) error {
	return a.options.Cache.Wait(ctx, revision)
}

// Metrics are those of the Aggregator.
func (a *Aggregator) Metrics() *Metrics { return a.metrics }

// Close closes idle connections. Connections in use go on.
func (a *Aggregator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, p := range a.pools {
		delete(a.pools, key)
		p.Close()
	}
}

// Find returns the handler of a request whose path belongs to a Backend, else nil. It is an Area
// of an api.Table.
func (a *Aggregator) Find(r *http.Request) http.Handler {
	gv, ok := versionOf(r.URL.Path)
	if !ok {
		return nil
	}
	s := a.Services(r.Context()).Lookup(gv.Group, gv.Version)
	if s == nil && a.options.Catalog != nil && !a.options.Catalog.Set().Group(gv.Group).Serves(gv.Version) {
		services, _ := a.Fresh(r.Context()) // On an error the previous Services remain.
		s = services.Lookup(gv.Group, gv.Version)
	}
	if s == nil {
		return nil
	}
	return &forwarding{a, s}
}

// versionOf returns the version of a group whose APIService decides about a path. The version of
// the core group decides about all paths below /api.
func versionOf(path string) (gv schema.GroupVersion, ok bool) {
	if rest, named := strings.CutPrefix(path, "/apis/"); named {
		group, rest, more := strings.Cut(rest, "/")
		version, _, _ := strings.Cut(rest, "/")
		return schema.GroupVersion{Group: group, Version: version}, more && group != "" && version != ""
	}
	if path == "/api" || strings.HasPrefix(path, "/api/") {
		return legacy, true
	}
	return gv, false
}

// legacy is the only version of the core group.
var legacy = schema.GroupVersion{Version: "v1"}
