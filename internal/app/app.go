package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/oidc"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/access/authz/node"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/certificates"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// History is how long the past of the store is kept, so that a watch can resume
// and a list can go on.
const History = 5 * time.Minute

// Options say what to serve, where, and to whom. The zero value serves what is
// in memory on some port of this machine, and leaves nothing behind.
type Options struct {
	// Address is host:port to listen on; empty for some port of 127.0.0.1.
	Address string
	// Listener is listened on in place of Address. The App closes it.
	Listener net.Listener

	// Dir holds what is kept: the store and the credentials that were made.
	// Empty keeps nothing.
	Dir string
	// InMemory keeps objects in memory although there is a Dir.
	InMemory bool

	// CertFile and KeyFile are the serving certificate; both empty to make one.
	CertFile, KeyFile string
	// NamedCertificates are shown to clients that ask for other names.
	NamedCertificates []pki.Named
	// ClientCAFile has authorities whose client certificates are accepted,
	// besides our own.
	ClientCAFile string
	// TokenFile has the bearer tokens that are accepted.
	TokenFile string
	// Authentication says how users are known, besides that.
	Authentication Authentication

	// Authorization says how it is decided who may do what.
	Authorization Authorization
	// CRDs is a file, or a folder of files, with CustomResourceDefinitions that are there from the start;
	// "" is for none.
	CRDs string
	// Cluster is one that the server extends, if there is one.
	Cluster Cluster
	// ServiceAccounts say which tokens of service accounts count, and who signs them.
	ServiceAccounts serviceaccount.Options
	// LegacyTokenCleanUpPeriod is after how long without a use the token of a Secret that
	// was made with its account is marked, and after how long again it is deleted; 0 for
	// legacytoken.DefaultPeriod.
	LegacyTokenCleanUpPeriod time.Duration

	// Kubelet says how kubelets are reached.
	Kubelet kubelet.Options
	// EgressSelectorFile has an EgressSelectorConfiguration: which networks are reached through
	// proxies. Empty for none.
	EgressSelectorFile string

	// Admission says which admission plugins are asked about a write.
	Admission Admission

	// RuntimeConfig says which built-in kinds are served.
	RuntimeConfig builtin.RuntimeConfig
	// AllowPrivileged lets containers be privileged.
	AllowPrivileged bool

	// Controllers says which controllers run, in the words of --controllers of
	// kube-controller-manager: "*" is all, "foo" the one of that name, "-foo" not
	// that one. Nil is all as well.
	Controllers []string

	// Services say which addresses and ports Services are given.
	Services Services

	// Offer is what media types the server speaks.
	Offer codec.Offer

	// Etcd is where the store is, in place of one in Dir or in memory, if it has
	// servers.
	Etcd Etcd
	// Backend is the store, in place of all others. Others may write to it. The
	// App closes it.
	Backend kv.Backend

	// From is what a store in memory holds at first; nil for nothing.
	From *Snapshot
	// Compiled has the schemas that other Apps of this process have compiled; nil for an App that
	// shares none.
	Compiled *compile.Shared
	// Hooks are for who tests programs with an App.
	Hooks Hooks

	// Undone is the newest revision of a past that the store was put back from, see
	// kv.RestoredError: an App that fails with one is to be started anew with it.
	Undone int64

	// MaxObjectBytes is how large an object may be as it is stored; 0 for
	// kv.DefaultMaxValueBytes. It is the store's, and so not that of a Backend.
	MaxObjectBytes int

	// Kubeconfig is where the administrator's is written; empty to write none.
	Kubeconfig string

	// Version is what clients are told as gitVersion; empty for that of the program.
	Version string
	// MinWatch is how long a watch lasts at least of which the client does not say how long;
	// it lasts up to twice that. 0 is half an hour.
	MinWatch time.Duration
	// StrictTransport are the directives of the header Strict-Transport-Security of every
	// answer; none sends no header.
	StrictTransport []string
	// GoawayChance is how likely a request by HTTP/2 is the last one on its connection.
	GoawayChance float64
	// Metrics say what of the metrics is shown.
	Metrics server.MetricOptions
	// Limits say how many requests are answered at a time.
	Limits server.Limits
	// Flags are those that the program was started with, for its /debug/ page.
	Flags []string

	// FlagValues are those of all flags, by their names.
	FlagValues map[string]string
	// SetVerbosity sets how much is logged, in the words of the flag -v. Nil sets nothing.
	SetVerbosity func(int)

	// Log is for people who look after the server; nil for nobody.
	Log *slog.Logger
	// Fatal is called when the store can no longer be trusted, and should end
	// the process. Nil makes the App fail.
	Fatal func(error)
}

// An App is a running server.
type App struct {
	log      *slog.Logger
	listener net.Listener
	identity *identity
	tokens   authn.Tokens // by which users are known
	accounts *serviceAccounts
	issuers  *oidc.Metrics            // of other issuers of tokens; nil if there are none
	caches   *authn.TokenCacheMetrics // of what others say of tokens; nil if nobody is asked
	issued   *certificates.Metrics    // certificates, for requests of them
	backend  kv.Backend
	parts    *parts
	server   *server.Server
	cache    *watchcache.Cache
	catalog  *resource.Catalog
	engines  engines
	undo     []func(context.Context) error // what was started, in order

	authorizer authz.Current
	byRoles    rbac.Authorizer
	admission  map[string][]byte // configurations of plugins, by their names
	byNodes    node.Authorizer
	chain      *chain.Chain
	egress     *selector.Selector // the ways out
}

// Start returns once the server is ready. It looks at everything that can be
// looked at before it changes anything, so an error leaves all as it was. ctx
// bounds the start, not the life of the App.
func Start(ctx context.Context, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{log: o.Log}
	if err := a.start(ctx, o); err != nil {
		return nil, errors.Join(err, a.unwind(ctx))
	}
	return a, nil
}

func (a *App) start(ctx context.Context, o Options) error {
	given, kinds, err := a.prepare(o)
	if err != nil {
		return err
	}
	o.Authentication.suit(&o.Authorization, o.Log)
	if given.delegated, err = o.Cluster.open(ctx, o.Log); err != nil {
		return err
	}
	if a.listener = o.Listener; a.listener == nil {
		if a.listener, err = listen(ctx, o.Address); err != nil {
			return err
		}
	}
	a.later(func(context.Context) error { return ignoreClosed(a.listener.Close()) })

	a.parts = newParts(o.Log)
	if a.backend, err = openBackend(ctx, o, a.egress.Dial(selector.Etcd), a.parts.fail); err != nil {
		return err
	}
	a.later(func(context.Context) error { return a.backend.Close() })
	if o.Hooks.Store != nil {
		a.backend = o.Hooks.Store(a.backend)
	}

	if a.identity, err = newIdentity(o, given, a.listener.Addr(), &a.tokens); err != nil {
		return err
	}
	if err = a.accounts.open(ctx, a, o); err != nil {
		return err
	}
	a.later(a.parts.stop)
	w, err := a.wire(ctx, o, kinds)
	if err != nil {
		return err
	}
	if err := a.useTokens(o, given, kinds, w.accounts); err != nil {
		return err
	}
	if given.delegated != nil {
		given.delegated.follow(a)
	}
	if err := w.applyDefinitions(ctx, a, o); err != nil {
		return err
	}
	a.cache, a.catalog = w.cache, w.catalog
	a.server = server.New(w.serverOptions(a, o))
	if o.Kubeconfig != "" {
		if err := a.identity.kubeconfig.Write(o.Kubeconfig); err != nil {
			return err
		}
	}
	a.later(a.server.Drain)
	a.parts.run("listener", func(ctx context.Context) error {
		err := a.server.Serve(a.listener)
		if err == nil {
			<-ctx.Done() // It was drained; the rest is about to stop.
		}
		return err
	})
	// Nobody waits for it, so it comes last. It ends first, while it can still
	// leave the work to another server.
	return w.control(a, o)
}

// prepare looks at everything that can be looked at before anything is changed. It returns the
// files that were given, and the built-in kinds.
func (a *App) prepare(o Options) (given files, kinds []*resource.Definition, err error) {
	if a.egress, err = selector.Open(o.EgressSelectorFile); err != nil {
		return given, nil, err
	}
	if given, err = readFiles(o, a.dialer(selector.ControlPlane)); err != nil {
		return given, nil, err
	}
	if err := o.Authentication.FrontProxy.check(o.ClientCAFile, o.Log); err != nil {
		return given, nil, err
	}
	if a.accounts, err = newServiceAccounts(o); err != nil {
		return given, nil, err
	}
	a.admission = given.admission
	if _, err := (&wired{}).selectPlugins(o, nil); err != nil {
		return given, nil, err
	}
	if err := a.newChain(o, given.authorization); err != nil {
		return given, nil, err
	}
	a.later(func(context.Context) error { a.chain.Close(); return nil })
	if err := checkControllers(o.Controllers); err != nil {
		return given, nil, err
	}
	if kinds, err = a.kinds(o); err != nil {
		return given, nil, err
	}
	if err := o.RuntimeConfig.Apply(kinds); err != nil {
		return given, nil, err
	}
	_, err = o.Services.read()
	return given, kinds, err
}

// dialer connects to what is in a network.
func (a *App) dialer(in selector.Name) *egress.Dialer {
	return &egress.Dialer{Through: a.egress.Dial(in)}
}

// later remembers what undoes a step of the start.
func (a *App) later(undo func(context.Context) error) { a.undo = append(a.undo, undo) }

// unwind undoes all steps, the last one first.
func (a *App) unwind(ctx context.Context) error {
	var errs []error
	for len(a.undo) > 0 {
		last := len(a.undo) - 1
		errs = append(errs, a.undo[last](ctx))
		a.undo = a.undo[:last]
	}
	return errors.Join(errs...)
}

// Stop stops the App in order: no new requests, watches end, requests under way
// are answered, the parts end, the store is closed. When ctx ends, what is left
// of the requests is cut off; the rest happens all the same. It is called once.
func (a *App) Stop(ctx context.Context) error { return a.unwind(ctx) }

// Failed yields the error of the first part that cannot go on. The App is to be
// stopped then.
func (a *App) Failed() <-chan error { return a.parts.failed }

// Address is where the App listens.
func (a *App) Address() net.Addr { return a.listener.Addr() }

// URL is how clients on this machine reach it.
func (a *App) URL() string { return "https://" + reachable(a.listener.Addr()) }

// CA returns the certificates, as PEM, by which clients trust the App.
func (a *App) CA() []byte { return a.identity.kubeconfig.CA }

// Kubeconfig returns the administrator's, with all that it refers to inside.
func (a *App) Kubeconfig() []byte { return a.identity.kubeconfig.Encode() }

func listen(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("cannot listen on %q: want host:port: %w", address, err)
	}
	return server.Listen(ctx, address)
}

// reachable is an address that leads to a listener that may listen on all.
func reachable(at net.Addr) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
