package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/outcome"
	"github.com/anykind/anykind/internal/admission/podsecurity"
	"github.com/anykind/anykind/internal/admission/policy"
	"github.com/anykind/anykind/internal/admission/quota"
	admissionwebhook "github.com/anykind/anykind/internal/admission/webhook"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/certificates"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/controller/storageversion"
	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/endpoint"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/mirror"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/convert"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
	"github.com/anykind/anykind/internal/server/api"
	"github.com/anykind/anykind/internal/server/console"
	"github.com/anykind/anykind/internal/server/discovery"
	"github.com/anykind/anykind/internal/server/fault"
	"github.com/anykind/anykind/internal/server/openapi"
	"github.com/anykind/anykind/internal/server/peer"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/server/search"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// wired has the parts between the store and the listener.
type wired struct {
	backend  kv.Backend
	copied   bool // the store is a copy, see Fork
	log      *slog.Logger
	cache    *watchcache.Cache
	catalog  *resource.Catalog
	registry *registry.Registry
	crds     *crd.Registrar
	health   health
	identity serveridentity.Server // among the servers of the store

	authorizer authz.Authorizer
	later      func(undo func(context.Context) error) // registers an undo function

	core      *resource.Set // the built-in kinds
	services  given
	addresses *allocation.Allocator
	usage     *usage.Evaluators
	charging  quota.Turns              // of charges to quotas
	server    kubernetesservice.Server // its addresses in the Service kubernetes

	extended *cluster.Client    // the cluster that this server extends; nil for none
	mirror   *mirror.Namespaces // of the cluster; nil for namespaces of this server

	dialer      *egress.Dialer
	others      *aggregate.Aggregator
	published   *published.Library // of other API servers
	peers       *peer.Proxy        // nil without peers
	webhooks    *webhook.Client
	conversions *convert.Metrics
	admissions  *admissionwebhook.Metrics
	policies    *policy.Metrics
	conditions  *match.Metrics // of webhooks and policies
	plugged     *admission.Metrics
	outcomes    *outcome.Log
	manifests   *manifest.Metrics
	following   []func(context.Context) // while the server runs
	standards   *podsecurity.Metrics
	fairness    *fairness.Dispatcher // nil without priority and fairness
	expressions *celpolicy.Shared    // of policies

	accounts authn.TokenAuthenticator // of service accounts
	keys     *serviceaccount.Discovery
	queues   *controller.Metrics
	versions *storageversion.Barrier // of the published storage versions; nil if none are
}

// assemble creates the parts between the store and the handler. None of them runs yet.
func (a *App) assemble(o Options, kinds []*resource.Definition) (*wired, error) {
	w := &wired{backend: a.backend, copied: o.copied != nil, log: o.Log, catalog: &resource.Catalog{}, standards: podsecurity.NewMetrics(), authorizer: &a.authorizer, later: a.later, outcomes: &outcome.Log{}, expressions: &celpolicy.Shared{}}
	var err error
	if w.services, err = o.Services.read(); err != nil {
		return nil, err
	}
	w.cache = watchcache.New(a.backend, o.copied.cache(watchcache.Options{Logger: o.Log, Undone: o.Undone}))
	core := resource.NewSet(kinds)
	if err := w.mirrorNamespaces(a, &o.Cluster, core.Lookup("", "namespaces")); err != nil {
		return nil, err
	}
	w.core, w.addresses = core, builtin.GiveAddresses(core, w.cache, w.services.cidrs, w.services.ports, o.Gates)
	w.usage = usage.New(w.cache, core)
	w.usage.Gates = o.Gates
	w.dialer = a.toServices(w, core, o.Services.ClusterIPs)
	w.conversions = convert.NewMetrics()
	if o.copied == nil {
		w.webhooks = webhook.New(webhook.Options{Services: w.dialer, URLs: a.dialer(selector.ControlPlane), Gates: o.Gates, Before: o.Hooks.Webhook})
		a.later(func(context.Context) error { w.webhooks.Close(); return nil })
	} else {
		o.copied.share(w)
	}
	w.conditions, w.manifests, w.authorizer = match.NewMetrics(), manifest.NewMetrics(serverID()), &a.authorizer
	w.plugged, w.queues = o.copied.counters()
	w.admissions, w.policies = admissionwebhook.NewMetrics(w.conditions), policy.NewMetrics(w.conditions)
	admitting, err := w.admit(o, core, a.given.admission)
	if err != nil {
		return nil, err
	}
	if w.fairness == nil {
		if err := w.prioritize(o); err != nil {
			return nil, err
		}
	}
	w.registry = registry.New(a.backend, w.cache, registry.Options{
		Gates:   o.Gates,
		Plugins: admitting, Logger: o.Log,
		Source: func(d *resource.Definition) (kv.Guard, bool) { return w.crds.Source(d) },
	})
	w.crds = crd.New(o.copied.definitions(crd.Options{
		Cache:   w.cache,
		Catalog: w.catalog,
		Objects: w.registry,
		Shared:  o.shared(),
		BuiltIn: kinds,
		Conversion: compile.Conversion{
			Poster:  w.webhooks,
			Metrics: w.conversions,
		},
		Compiled: o.Compiled,
		Logger:   o.Log,
	}))
	return w, nil
}

// wire creates the parts, starts them, and returns once all stored objects are served.
func (a *App) wire(ctx context.Context, o Options, kinds []*resource.Definition) (*wired, error) {
	w, err := a.assemble(o, kinds)
	if err != nil {
		return nil, err
	}
	if w.server, err = w.services.server(a.listener.Addr()); err != nil {
		return nil, err
	}
	w.identify(o)
	if err := w.peer(a, o); err != nil {
		return nil, err
	}
	w.run(a, o)
	if err := a.until(ctx, w.crds.Fresh); err != nil {
		return nil, fmt.Errorf("loading stored objects: %w", err)
	}
	err = a.until(ctx, func(ctx context.Context) error {
		if err := w.ensureCluster(ctx, w.core); err != nil {
			return err
		}
		w.authorize(a, o.Gates)
		w.ensureRoles(ctx, a, o)
		return nil
	})
	return w, err
}

// hold returns the check of requests that wait for storage versions; nil if none do.
func (w *wired) hold() func(*request.Info) error {
	if w.versions == nil {
		return nil
	}
	return w.versions.Check
}

// run runs the parts between the store and the handler.
func (w *wired) run(a *App, o Options) {
	w.aggregate(a, o, w.core)
	leaser, ok := kv.As[kv.Leaser](a.backend)
	w.server.Leases = ok
	core := w.core
	w.accounts, w.keys = a.accounts.authenticator(w, o, core), a.accounts.discovery(w)
	w.health.store, w.health.fair, w.health.identified = backendCheck(a.backend), !o.Unclassified, o.Gates.On(gate.APIServerIdentity)
	w.health.advertised, w.health.peers = o.Gates.On(gate.UnknownVersionInteroperabilityProxy), w.peers != nil
	if o.runs(storageversion.Name) {
		w.versions = storageversion.NewBarrier(w.catalog.Set())
		w.health.versions = w.versions
	}
	w.health.elects = o.Gates.On(gate.CoordinatedLeaderElection)
	w.health.cache = a.parts.run("watchcache", w.cache.Run)
	w.health.definitions = a.parts.run("customresourcedefinitions", w.crds.Run)
	w.health.history = a.parts.run("history", func(ctx context.Context) error {
		return o.retain(ctx, a.backend, func(err error) {
			o.Log.Warn("history could not be compacted", "error", err)
		})
	})
	for _, follow := range w.following {
		a.parts.run("following", func(ctx context.Context) error { follow(ctx); return ctx.Err() })
	}
	if w.server.Leases && w.server.Reconcile && !w.server.Address.Addr().IsLoopback() { // not reachable by others
		a.parts.run("leases", func(ctx context.Context) error { return w.master(ctx, leaser, w.server.Address.Addr()) })
	}
}

// kinds returns the built-in kinds, with connections to kubelets and pods.
func (a *App) kinds(o Options) ([]*resource.Definition, error) {
	cluster := a.dialer(selector.Cluster)
	if a.independent == nil {
		a.issued = certificates.NewMetrics()
		a.independent = builtin.Independent(o.AllowPrivileged, a.issued, o.Gates)
	}
	o.Kubelet.Dial, o.Kubelet.Proxy, o.Kubelet.Log = cluster.DialContext, cluster.Proxy, o.Log
	kubelets, err := kubelet.New(o.Kubelet)
	if err != nil {
		return nil, err
	}
	network := proxy.Transport(cluster.DialContext)
	network.Proxy = cluster.Proxy
	a.streams = remotecommand.NewMetrics()
	store := func(ctx context.Context) error { return backendCheck(a.backend)(ctx) } // opened later
	a.later(func(context.Context) error {
		kubelets.Close()
		network.CloseIdleConnections()
		return nil
	})
	return builtin.Dependencies{AllowPrivileged: o.AllowPrivileged, Kubelets: kubelets, Network: network, Authorizer: &a.authorizer, Roles: &a.byRoles, Tokens: a.accounts.issuer, Store: store, Users: &a.tokens, Certificates: a.issued, Streams: a.streams, Gates: o.Gates, Independent: a.independent}.Definitions(), nil
}

// toServices returns the dialer to Services. Those of a cluster that this server extends have a DNS
// name.
func (a *App) toServices(w *wired, core *resource.Set, clusterIPs bool) *egress.Dialer {
	d := a.dialer(selector.Cluster)
	if w.extended != nil {
		d.Resolve = byName
		return d
	}
	r := &endpoint.Resolver{
		Cache:          w.cache,
		Services:       core.Lookup("", "services"),
		EndpointSlices: core.Lookup("discovery.k8s.io", "endpointslices"),
		ClusterIPs:     clusterIPs,
	}
	d.Resolve = r.Resolve
	return d
}

// until calls step, and cancels it if a part fails.
func (a *App) until(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- step(ctx) }()
	select {
	case err := <-done:
		return err
	case err := <-a.parts.failed:
		cancel(err)
		<-done
		return err
	}
}

// serverOptions returns the options of the server.
func (w *wired) serverOptions(a *App, o Options) server.Options {
	objects := rest.New(w.registry, w.catalog, rest.Options{
		MinWatch: o.MinWatch,
		Refresh:  w.crds.Fresh,
		MaxBody:  max(rest.MaxBody, 2*int64(o.MaxObjectBytes)), // an object that fits the store fits a request
		Then:     w.rightsThen(a),
		Rights:   w.pastRights(a),

		Gates: o.Gates,
	})
	checks := w.health.checks()
	var faults *fault.Handler // each fork has its own
	if o.FaultInjection {
		faults = &fault.Handler{}
	}
	version := server.BuildVersion()
	build := version.Anykind + " " + version.GitCommit
	found := discovery.New(w.catalog, discovery.Options{
		Paths: append(server.Paths(checks, o.Gates), w.keys.Paths()...), Build: build, Gates: o.Gates, Refresh: w.fresh,
		Services: w.others.Services, Published: w.publishedFor(published.ClientTimeout), Peers: w.peers,
	})
	documents := openapi.New(w.catalog, openapi.Options{Build: build, Release: o.Gates.Emulated().String(), CBOR: o.Gates.On(gate.CBORServingAndStorage), NoEnums: !o.Gates.On(gate.OpenAPIEnums), Pages: pages(w.keys), Aggregated: documented{w}, Refresh: w.fresh})
	return server.Options{
		API: api.Table{
			w.peers.Find,
			w.others.Find,
			api.At(found.Handles, found),
			api.At(documents.Handles, documents),
			api.At(w.keys.Owns, w.keys),
			api.Everywhere(objects),
		},
		TLS:             a.identity.tls,
		ClientCAs:       a.identity.told(),
		Authenticator:   a.identity.users,
		Hold:            w.hold(),
		Authorizer:      &a.authorizer,
		Audit:           a.audit,
		Traces:          a.traces.Tracers(),
		Gates:           o.Gates,
		Catalog:         w.catalog,
		Collectors:      append(w.collectors(a, o), objects.Collectors()...),
		Checks:          checks,
		Pages:           append(fairnessPages(w.fairness), w.page(a.backend, o.Log)),
		Store:           a.saved(o),
		Forget:          w.registry.Forget,
		AllChanges:      objects.AllChanges,
		Forks:           a.forks,
		Console:         o.console(),
		Changes:         o.copied.changes(objects),
		Search:          w.search(a),
		Outcomes:        &outcome.Page{Log: w.outcomes, Catalog: w.catalog, Authorizer: &a.authorizer},
		Faults:          faults,
		Version:         o.Version,
		StrictTransport: o.StrictTransport,
		GoawayChance:    o.GoawayChance,
		Timeout:         o.Timeout,
		Protocol:        o.Protocol,
		Limits:          o.Limits,
		Fairness:        w.fairness,
		Metrics:         o.Metrics,
		Flags:           o.Flags,
		FlagValues:      o.FlagValues,
		SetVerbosity:    o.SetVerbosity,
		Within:          o.Hooks.Answer,
		Begun:           o.Hooks.Request,
		Log:             o.Log,
	}
}

// console returns the pages of the console; nil for none.
func (o Options) console() http.Handler {
	if !o.Console {
		return nil
	}
	return console.Pages()
}

// search returns the handler of searches.
func (w *wired) search(a *App) http.Handler {
	s := search.New(search.Options{Cache: w.cache, Catalog: w.catalog, Authorizer: &a.authorizer, Objects: w.registry, Log: w.log})
	a.later(s.Close)
	return s
}

// collectors returns the metrics of the parts.
func (w *wired) collectors(a *App, o Options) []server.Collector {
	all := slices.Concat(server.StoreSizes(a.backend, o.Log), server.ObjectCounts(a.backend, w.catalog, o.Log), server.StoreCalls(a.backend))
	for _, part := range []interface{ Collectors() []server.Collector }{
		w.conversions, w.admissions, w.policies, w.conditions, w.standards, w.manifests, a.accounts.metrics, a.accounts.signer, a.issuers,
		a.caches, a.chain, w.others.Metrics(), w.peers.Metrics(), a.egress, w.plugged, w.addresses, a.issued, a.streams, a.audit, w.fairness,
		a.rekeyed, a.encryption, w.queues, w.webhooks, a.identity.certificates,
	} {
		all = append(all, part.Collectors()...)
	}
	return all
}

// page returns the page with the progress of the store, the cache and controllers.
func (w *wired) page(b kv.Backend, log *slog.Logger) server.Page {
	return server.Page{Path: "store", About: "how far the store and what follows it have come", Serve: func(rw http.ResponseWriter, r *http.Request) {
		start := time.Now()
		revision, err := b.Revision(r.Context())
		if err != nil {
			log.Warn("the revision of the store is unknown", "error", err)
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		set := w.catalog.Set()
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(rw, "store is at revision %d (took %v to say so)\nwatch cache is at revision %d\n%d resources in %d groups are served\n",
			revision, time.Since(start), w.cache.Revision(), set.Len(), len(set.Groups()))
	}}
}
