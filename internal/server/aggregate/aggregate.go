// Package aggregate puts other API servers behind this one, as APIServices say.
//
// An APIService that names a Service sends the paths of one version of a group to the API server
// behind that Service, its Backend. All others are local: they only order discovery. Services is
// what all of them say at one moment; it is read by every request, and costs those that this
// server answers itself next to nothing.
//
// The package knows APIServices, connections to Backends, and how a request is sent to one: who
// asks goes along in headers, which are believed because of a client certificate. It does not
// know what Backends serve: internal/server/discovery and internal/server/openapi ask them. Nor does it find
// out whether one is well: internal/server/aggregate/availability does, and writes it into the
// APIService, where every server reads it.
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
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of an Aggregator. Cache and Kinds are needed.
type Options struct {
	Cache *watchcache.Cache
	// Kinds are the built-in kinds, APIServices among them.
	Kinds *resource.Set
	// Catalog says what this server serves itself. A version of a group that it does not have is
	// looked for among the APIServices of now; nil looks for none so.
	Catalog *resource.Catalog
	// Dialer connects to Backends; a zero one if nil.
	Dialer *egress.Dialer
	// Certificate is that of this server as a front proxy, as it is when it is called. It may
	// return nil, and be nil, for none.
	Certificate func() *tls.Certificate
	// Headers are those by which this server believes front proxies. None that a client has sent
	// goes to a Backend, nor one of the standard ones.
	Headers authn.ProxyHeaders
	// Log is for people who look after the server; nil for nobody.
	Log *slog.Logger
}

// An Aggregator sends requests to other API servers.
type Aggregator struct {
	options  Options
	follower *stored.Follower
	metrics  *Metrics
	now      atomic.Pointer[Services]

	known known

	mu    sync.Mutex
	pools map[poolKey]*pool
}

// New returns an Aggregator. It reads nothing before the first request.
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
	a.metrics = newMetrics(a.Services)
	a.now.Store(&Services{})
	a.follower = stored.Follow(o.Cache, o.Kinds, []schema.GroupResource{{Group: "apiregistration.k8s.io", Resource: "apiservices"}}, a.apply)
	return a
}

// Services returns what the APIServices say as far as the cache of this server has come. It asks
// no store. If they cannot be read it is what was known before.
func (a *Aggregator) Services(ctx context.Context) *Services {
	if err := a.follower.KeepUp(ctx); err != nil && ctx.Err() == nil {
		a.options.Log.Warn("APIServices cannot be read; the previous ones stay in effect", "error", err)
	}
	return a.now.Load()
}

// Fresh is Services with all that was acknowledged to anyone before the request of ctx came.
func (a *Aggregator) Fresh(ctx context.Context) (*Services, error) {
	err := a.follower.Refresh(ctx)
	return a.now.Load(), err
}

// Committed returns once what a write of an APIService at a revision says is in force here.
func (a *Aggregator) Committed(ctx context.Context, revision int64) error {
	return a.options.Cache.Wait(ctx, revision)
}

// Metrics are those of the Aggregator.
func (a *Aggregator) Metrics() *Metrics { return a.metrics }

// Close gives up the connections that are not in use. Those that are go on.
func (a *Aggregator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, p := range a.pools {
		delete(a.pools, key)
		p.close()
	}
}

// Find returns what answers a request if its path is one of a Backend, and nil if not. It is an
// area of an api.Table.
func (a *Aggregator) Find(r *http.Request) http.Handler {
	gv, ok := versionOf(r.URL.Path)
	if !ok {
		return nil
	}
	s := a.Services(r.Context()).Lookup(gv.Group, gv.Version)
	if s == nil && a.options.Catalog != nil && !a.options.Catalog.Set().Group(gv.Group).Serves(gv.Version) {
		services, _ := a.Fresh(r.Context()) // What it could not read is not there, as before.
		s = services.Lookup(gv.Group, gv.Version)
	}
	if s == nil {
		return nil
	}
	return &forwarding{a, s}
}

// versionOf returns the version of a group whose APIService says who answers for a path. That of
// the group without a name answers for everything below /api.
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

// legacy is the only version of the group without a name.
var legacy = schema.GroupVersion{Version: "v1"}
