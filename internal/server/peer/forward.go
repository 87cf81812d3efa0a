package peer

import (
	"math/rand/v2"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
	"github.com/anykind/anykind/internal/object/status"
)

// forwarded is the header of a request that a peer has forwarded. It goes no further.
const forwarded = "X-Kubernetes-Peer-Proxied"

// Find returns the handler of a request for a resource that only peers serve, else nil. It is an
// Area of an api.Table.
func (p *Proxy) Find(r *http.Request) http.Handler {
	if p == nil || p.now.Load() == nil || r.Header.Get(forwarded) == "true" {
		return nil
	}
	info := request.InfoOf(r)
	if !info.IsResource {
		return nil
	}
	of := schema.GroupVersionResource{Group: info.Group, Version: info.Version, Resource: info.Resource}
	if p.local(of) {
		return nil
	}
	ids := p.serving(r.Context(), of)
	if len(ids) == 0 {
		return nil
	}
	return &forwarding{p, of, ids}
}

// local reports whether this server serves a resource.
func (p *Proxy) local(of schema.GroupVersionResource) bool {
	d := p.options.Catalog.Set().Lookup(of.Group, of.Resource)
	if d == nil {
		return false
	}
	v := d.Version(of.Version)
	return v != nil && v.Served
}

// A forwarding forwards a request to one of the peers that serve its resource.
type forwarding struct {
	proxy    *Proxy
	resource schema.GroupVersionResource
	peers    []string
}

// ServeHTTP implements http.Handler.
func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, user := f.proxy, request.UserFrom(r.Context())
	addresses := p.addresses(f.peers)
	if len(addresses) == 0 {
		p.metrics.failed(endpointResolution, f.resource)
		request.Fail(w, r, status.Unavailable("Error getting ip and port info of the remote server while proxying"))
		return
	}
	ways, err := p.transports()
	if err != nil || user == nil {
		p.metrics.failed(transportSetup, f.resource)
		http.Error(w, "the request cannot be forwarded to a peer", http.StatusInternalServerError)
		return
	}
	if q := request.From(r.Context()); q != nil && q.Place != nil && q.Info.IsLongRunning() {
		q.Release()
	}
	to := &url.URL{Scheme: "https", Host: addresses[rand.IntN(len(addresses))], Path: r.URL.Path, RawQuery: r.URL.Query().Encode()}
	p.options.Log.Info("a request goes to a peer", "path", r.URL.Path, "peer", to.Host)
	answer := &answer{ResponseWriter: w}
	defer func() { p.metrics.sent(answer.code, f.resource) }() // also if the connection breaks, which panics
	proxy.Server{
		To: to, Transport: span.Transport(r.Context(), ways.Usual), Upgrades: ways.Upgrades,
		Tell: func(h http.Header) {
			p.options.Front.Tell(h, user)
			h.Set(forwarded, "true")
		},
	}.ServeHTTP(answer, r)
}

// An answer records the code of a response.
type answer struct {
	http.ResponseWriter
	code int // 0 before the header
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if a.code < http.StatusOK {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets an http.ResponseController flush and take over the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
