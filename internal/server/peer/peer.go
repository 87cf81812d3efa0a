// Package peer forwards requests to the other servers of a store.
//
// Servers of different versions, or with different built-in kinds, may share a store. A request for
// a resource that this server does not serve, but one of its peers does, goes to that peer. Each
// server publishes an identity Lease and its address in the store. A Proxy requests discovery from
// each peer when its Lease or address appears or changes. Discovery of this server also lists the
// resources of its peers, unless the client requests the profile nopeer.
//
// Custom kinds and APIServices are in the store, so a server serves all of them itself. Their
// versions are excluded from the discovery of peers. A deleted version stays excluded for five
// minutes, in which a peer must have seen the deletion. Otherwise a deleted kind would stay in discovery.
//
// The package knows Leases, discovery documents and forwarding. It does not know authorization: the
// peer trusts the headers of this server, and authorizes the user again. Nor does it publish the
// address of this server: internal/app does.
//
// Begin with forward.go.
package peer

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/front"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of a Proxy. All but Log are required.
type Options struct {
	// Self is the name of the identity Lease of this server.
	Self  string
	Cache *watchcache.Cache
	// Definitions has the kinds CustomResourceDefinition and APIService.
	Definitions *resource.Set
	// Catalog holds the kinds that this server serves.
	Catalog *resource.Catalog
	// Front connects to the peers, and names the user of a request.
	Front *front.Front
	// CAs returns the current CAs of the serving certificates of peers.
	CAs func() *pki.Authorities
	// Log is for operators; nil discards.
	Log *slog.Logger
}

// A Proxy knows the peers of this server. A nil Proxy has none.
type Proxy struct {
	options Options
	metrics *Metrics
	own     custom
	pool    front.Pool
	now     atomic.Pointer[view] // nil without peers

	mu      sync.Mutex
	servers map[string]*server
	queue   *controller.Queue // of the running controller; nil for none
	groups  *Groups           // of the last call of Groups
	others  others            // of the last call of Others
}

// A server is a peer, or another server that may become one.
type server struct {
	holder  string // holder of its identity Lease; "" without one
	address string // host:port; "" if unknown

	served *served // nil before its discovery is known
	of     string  // the identity of the process that sent it
}

// identity identifies the process of a server.
func (s *server) identity() string { return s.holder + " " + s.address }

// served are the resources of a peer at one moment. They do not change.
type served struct {
	id        string
	asked     time.Time // when the discovery was requested
	resources map[schema.GroupVersionResource]bool
	groups    []any // all but the core group: the items of aggregated discovery
}

// A view has the peers at one moment, by id. It does not change.
type view struct{ peers []*served }

// New returns a Proxy without peers. Its Controller finds them.
func New(o Options) *Proxy {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{options: o, metrics: newMetrics(), servers: map[string]*server{}}
	p.own.follow(o.Cache, o.Definitions, p.refetch)
	return p
}

// Metrics returns the metrics of the Proxy; those of a nil Proxy are empty.
func (p *Proxy) Metrics() *Metrics {
	if p == nil {
		return nil
	}
	return p.metrics
}

// Close closes idle connections to peers.
func (p *Proxy) Close() { p.pool.Close() }

// publish makes the known peers the current ones. The caller holds mu.
func (p *Proxy) publish() {
	v := &view{}
	for _, id := range slices.Sorted(maps.Keys(p.servers)) {
		if s := p.servers[id]; s.holder != "" && s.served != nil {
			v.peers = append(v.peers, s.served)
		}
	}
	if len(v.peers) == 0 {
		p.now.Store(nil)
		return
	}
	if was := p.now.Load(); was == nil || !slices.Equal(was.peers, v.peers) {
		p.now.Store(v)
	}
}

// serving returns the peers that serve a resource. It returns none for versions of custom kinds and
// APIServices.
func (p *Proxy) serving(ctx context.Context, of schema.GroupVersionResource) (ids []string) {
	v := p.now.Load()
	if v == nil {
		return nil
	}
	for _, s := range v.peers {
		if !s.resources[of] {
			continue
		}
		p.own.keepUp(ctx, p.options.Log)
		if !p.own.excludes(of.GroupVersion(), s.asked) {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// addresses returns the known addresses of peers.
func (p *Proxy) addresses(ids []string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if s := p.servers[id]; s != nil && s.address != "" {
			found = append(found, s.address)
		}
	}
	return found
}

// refetch schedules requests for the discovery of all peers, at which they must have seen the
// deletions before now.
func (p *Proxy) refetch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil {
		return
	}
	for id := range p.servers {
		p.queue.After(controller.Task{Key: id}, grace)
	}
}

// Groups are the groups of the peers, by server. They do not change: a pointer identifies the
// content.
type Groups struct {
	self  string
	peers []string // ids, sorted
	lists [][]any  // of the peers: the items of aggregated discovery

	view    *view
	changes int // of own
}

// Groups returns the groups of the peers, without the versions of custom kinds and APIServices, or
// nil if there are no peers.
func (p *Proxy) Groups(ctx context.Context) *Groups {
	v := p.now.Load()
	if v == nil {
		return nil
	}
	p.own.keepUp(ctx, p.options.Log)
	changes := p.own.changed()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups != nil && p.groups.view == v && p.groups.changes == changes {
		return p.groups
	}
	p.groups = &Groups{self: p.options.Self, view: v, changes: changes}
	for _, s := range v.peers {
		p.groups.peers = append(p.groups.peers, s.id)
		p.groups.lists = append(p.groups.lists, p.own.without(s))
	}
	return p.groups
}

// transports returns the transports to peers. Every API server has a certificate for
// the Service kubernetes.
func (p *Proxy) transports() (*front.Transports, error) {
	cas := p.options.CAs()
	return p.options.Front.Transports(&p.pool, cas, func() (*tls.Config, error) {
		return &tls.Config{ServerName: "kubernetes.default.svc", RootCAs: cas.Pool}, nil
	})
}
