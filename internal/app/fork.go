package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// forkPast limits the history of a fork in bytes.
const forkPast = 32 << 20

// ForkOptions configure a fork.
type ForkOptions struct {
	// Revision is the state that it begins with; kv.Latest is the newest one.
	Revision int64
	// Webhooks calls admission webhooks, with dryRun. Without it, they are left out.
	Webhooks bool
	// Path is the prefix of the paths of the fork in the server.
	Path string
	// Replay repeats the changes of the server after Revision, from the first request on and without controllers. Nil is none. It
	// needs a history.
	Replay *server.ForkReplay
}

// A Fork is a copy of an App with a store of its own over a state of the App's store. It shares what it does not
// change: objects, definitions, compiled schemas and credentials. It writes nothing outside: it has no
// network but for webhooks that are told of a dry run, and its tokens are invalid elsewhere.
type Fork struct {
	*App
	replay   *replay // nil for none
	requests sync.WaitGroup

	mu      sync.Mutex
	stopped bool
}

// Fork returns a running copy of the App.
func (a *App) Fork(ctx context.Context, o ForkOptions) (*Fork, error) {
	revision, err := a.cache.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	if o.Revision == kv.Latest {
		o.Revision = revision
	}
	if err := a.wired.crds.Committed(ctx, revision); err != nil {
		return nil, err
	}
	f := &Fork{App: &App{
		log: a.log, listener: a.listener, audit: a.audit, given: a.given, outside: a.outside, caches: a.caches, independent: a.independent, issued: a.issued,
		parts: newParts(a.log), dial: a.isolated,
	}}
	if err := f.start(ctx, a, o); err != nil {
		return nil, errors.Join(err, f.unwind(ctx))
	}
	return f, nil
}

// copy starts a fork for a client.
func (a *App) copy(ctx context.Context, spec *server.ForkSpec, path string) (server.Copy, error) {
	o := ForkOptions{Webhooks: spec.Webhooks == server.WebhooksDryRun, Path: path, Replay: spec.Replay}
	var err error
	switch {
	case spec.ResourceVersion != "":
		o.Revision, err = strconv.ParseInt(spec.ResourceVersion, 10, 64)
	case spec.AsOf != nil:
		o.Revision, err = a.revisionAt(ctx, spec.AsOf.Time)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := kv.As[kv.Keeper](a.backend); !ok {
		return nil, status.BadRequest("a server with its store in etcd has no forks: start it with --data-dir or in memory, or open a snapshot with --open")
	}
	f, err := a.Fork(ctx, o)
	var compacted *kv.CompactedError
	switch {
	case errors.As(err, &compacted):
		return nil, status.Expired(err.Error())
	case err != nil:
		return nil, registry.StorageError(err)
	}
	return f, nil
}

// Forks returns the forks of the App.
func (a *App) Forks() *server.Forks { return a.forks }

// revisionAt returns the revision of the state at a time.
func (a *App) revisionAt(ctx context.Context, t time.Time) (int64, error) {
	historian, ok := kv.As[kv.Historian](a.backend)
	if !ok {
		return 0, registry.NoHistory()
	}
	revision, err := historian.At(ctx, t)
	var early *kv.TooEarlyError
	if errors.As(err, &early) {
		return 0, status.Expired(early.Error())
	}
	return revision, err
}

// Revision returns that of the state that the fork began with.
func (f *Fork) Revision() int64 { return f.options.copied.base }

// errIsolated is the error of connections from a fork.
var errIsolated = errors.New("a fork has no network: it does not reach pods, nodes, Services and other API servers")

// isolated returns the Dial of a fork. It reaches webhooks that decide, and no cluster.
func (a *App) isolated(in selector.Name) egress.Dial {
	if in == selector.ControlPlane {
		return a.dialer(in).Through
	}
	return func(context.Context, string, string) (net.Conn, error) { return nil, errIsolated }
}

// start starts the fork of an App.
func (f *Fork) start(ctx context.Context, of *App, with ForkOptions) error {
	state, release, err := kv.Keep(ctx, of.backend, with.Revision)
	if err != nil {
		return err
	}
	f.later(func(context.Context) error { release(); return nil })
	o := of.options.forFork(&copied{of: of, base: state.Revision(), webhooks: with.Webhooks})
	if with.Replay != nil {
		historian, ok := kv.As[kv.Historian](of.backend)
		if !ok {
			return registry.NoHistory()
		}
		f.replay = &replay{from: historian, spec: *with.Replay, log: f.log, started: make(chan struct{})}
		o.Controllers = []string{} // the changes of those of the server are recorded
	}
	f.options = o
	f.backend = memkv.New(memkv.Options{Over: state, MaxValueBytes: o.MaxObjectBytes, MaxPastBytes: forkPast})
	f.later(func(context.Context) error { return f.backend.Close() })
	if f.accounts, err = of.accounts.forked(); err != nil {
		return err
	}
	if err := f.newChain(o, of.given.authorization); err != nil {
		return err
	}
	own := *of.identity
	own.users = own.authenticator(o.Authentication.anonymous(of.given.issuers), &f.tokens, o.Gates)
	f.identity = &own
	kinds, err := f.kinds(o)
	if err != nil {
		return err
	}
	if err := o.RuntimeConfig.Apply(kinds, o.Gates); err != nil {
		return err
	}
	f.later(f.parts.stop)
	w, err := f.assemble(o, kinds)
	if err != nil {
		return err
	}
	w.server = of.wired.server
	w.run(f.App, o)
	if err := f.until(ctx, w.crds.Fresh); err != nil {
		return err
	}
	w.authorize(f.App, o.Gates)
	f.useTokens(o, w)
	f.wired, f.cache, f.catalog = w, w.cache, w.catalog
	options := w.serverOptions(f.App, o)
	options.Prefix = with.Path
	gate := gated{gate: &of.authorizer, path: with.Path, Authorizer: &f.authorizer}
	if f.replay != nil {
		gate.now = &of.authorizer
	}
	options.Authorizer = gate
	f.server = server.New(options)
	f.later(f.drain)
	if err := w.control(f.App, o); err != nil || f.replay == nil {
		return err
	}
	f.replay.to = f.backend
	f.parts.run("replay", func(ctx context.Context) error { return f.replay.run(ctx, f.Revision()) })
	return nil
}

// forFork returns the options of a fork. Files that only a start reads are left out.
func (o Options) forFork(c *copied) Options {
	o.InMemory, o.Dir, o.Backend, o.Etcd, o.History = true, "", nil, Etcd{}, Remembering{}
	o.From, o.Open, o.Restore = nil, "", ""
	o.CRDs, o.Kubeconfig, o.Cluster, o.Console = "", "", Cluster{}, false
	o.Hooks, o.Undone = Hooks{}, 0
	o.Unclassified = true // the Dispatcher of the server limits its requests
	o.copied = c
	if !c.webhooks {
		o.Admission = o.Admission.withoutWebhooks()
	}
	if o.opened != nil { // an opened file has no controllers, so that its content stays as it is
		o.Controllers = nil
	}
	o.opened = nil
	return o
}

// Serve serves a request for the fork, whose path begins after Path.
func (f *Fork) Serve(w http.ResponseWriter, r *http.Request) (served bool) {
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return false
	}
	f.requests.Add(1)
	f.mu.Unlock()
	f.replay.start()
	defer f.requests.Done()
	f.server.ServeHTTP(w, r)
	return true
}

// drain ends all watches and waits for the requests.
func (f *Fork) drain(ctx context.Context) error {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	err := f.server.Drain(ctx)
	ended := make(chan struct{})
	go func() {
		f.requests.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done(): // the other requests fail, because their store is closed
		return errors.Join(err, ctx.Err())
	}
}

// entering is the verb of requests for a fork, on its path in the server.
const entering = "use"

// gated is the authorizer of a fork: the rights in the fork count for users whom the server lets in.
type gated struct {
	gate authz.Authorizer
	path string
	authz.Authorizer
	// now is the authorizer of the server if the fork has later states than its first one: a user needs the same right in the
	// server. Otherwise nil.
	now authz.Authorizer
}

// Authorize implements authz.Authorizer. Of an impersonated request, the impersonator has to be let in.
func (g gated) Authorize(ctx context.Context, asked *authz.Attributes) (authz.Decision, string, error) {
	enter := &authz.Attributes{User: asked.User, Info: request.Info{Verb: entering, Path: g.path}}
	if q := request.From(ctx); q != nil && q.Impersonator != nil {
		enter.User = q.Impersonator
	}
	// A Request of its own: this one has revisions of the fork.
	decision, reason, err := g.gate.Authorize(request.With(ctx, &request.Request{Info: enter.Info, User: enter.User}), enter)
	if decision == authz.Allow && g.now != nil {
		decision, reason, err = g.now.Authorize(request.With(ctx, &request.Request{Info: asked.Info, User: asked.User}), asked)
	}
	if decision != authz.Allow {
		return decision, reason, err
	}
	return g.Authorizer.Authorize(ctx, asked)
}

// copied has the App that a Fork is a copy of.
type copied struct {
	of   *App
	base int64 // the revision of the state that the fork begins with
	// webhooks calls admission webhooks, with dryRun.
	webhooks bool
}

// cache returns the options of a cache. That of a fork begins with the objects of the App's.
func (c *copied) cache(o watchcache.Options) watchcache.Options {
	if c != nil {
		o.Over, o.Base = c.of.cache, c.base
	}
	return o
}

// definitions returns the options of a Registrar. That of a fork begins with the definitions of the App's.
func (c *copied) definitions(o crd.Options) crd.Options {
	if c != nil {
		o.Over, o.Base = c.of.wired.crds, c.base
	}
	return o
}

// counters are metrics that all forks of an App share: they would be most of the memory of a fork.
type counters struct {
	plugged *admission.Metrics
	queues  *controller.Metrics
}

// counters returns the metrics of an App, or of a fork.
func (c *copied) counters() (plugged *admission.Metrics, queues *controller.Metrics) {
	if c != nil {
		return c.of.inForks.plugged, c.of.inForks.queues
	}
	return admission.NewMetrics(), controller.NewMetrics()
}

// once delays the controllers of a fork until its first write: a copy without changes has no work for them.
func (c *copied) once(b kv.Backend, run func(context.Context) error) func(context.Context) error {
	if c == nil {
		return run
	}
	return func(ctx context.Context) error {
		for batch, err := range b.Watch(ctx, "", c.base) {
			if err != nil || len(batch.Events) > 0 {
				break
			}
		}
		return run(ctx)
	}
}

// changes returns the page with the changes of a fork; nil for another App.
func (c *copied) changes(objects *rest.Handler) http.HandlerFunc {
	if c == nil {
		return nil
	}
	return objects.Differences
}

// share gives a fork parts of the App that keep no state.
func (c *copied) share(w *wired) {
	of := c.of.wired
	w.webhooks, w.conversions, w.expressions, w.fairness = of.webhooks, of.conversions, of.expressions, of.fairness
}
