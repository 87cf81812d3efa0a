package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/oidc"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/access/authz/node"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/certificates"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/egress/selector"
	"github.com/anykind/anykind/internal/network/kubelet"
	"github.com/anykind/anykind/internal/network/otlp"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/remotecommand"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// History is the retention of old revisions, for watches that resume and lists that continue.
const History = 5 * time.Minute

// Options configures an App. The zero value serves from memory on a free port of this machine, and
// leaves no files.
type Options struct {
	// Address is host:port to listen on; empty is a free port of 127.0.0.1.
	Address string
	// Listener replaces Address. The App closes it.
	Listener net.Listener

	// Dir is the directory for the store and generated credentials. Empty keeps everything in
	// memory.
	Dir string
	// InMemory keeps objects in memory even with a Dir.
	InMemory bool

	// CertFile and KeyFile are the serving certificate; both empty to generate one.
	CertFile, KeyFile string
	// NamedCertificates are serving certificates for further names (SNI).
	NamedCertificates []pki.Named
	// ClientCAFile has CAs for client certificates, in addition to the server's own.
	ClientCAFile string
	// TokenFile has static bearer tokens.
	TokenFile string
	// Authentication configures all other authenticators.
	Authentication Authentication

	// Authorization configures the authorizers.
	Authorization Authorization
	// CRDs is a file or folder with CustomResourceDefinitions to create at the start; "" for none.
	CRDs string
	// Cluster is the cluster that the server extends, if any.
	Cluster Cluster
	// ServiceAccounts configures tokens of service accounts.
	ServiceAccounts serviceaccount.Options
	// LegacyTokenCleanUpPeriod is the idle time after which an automatically created token Secret is
	// marked invalid, and the time after that until it is deleted; 0 is legacytoken.DefaultPeriod.
	LegacyTokenCleanUpPeriod time.Duration

	// Kubelet configures connections to kubelets.
	Kubelet kubelet.Options
	// TracingFile is a TracingConfiguration: the collector of traces, and the sampling. Empty for none.
	TracingFile string
	// EgressSelectorFile is an EgressSelectorConfiguration: proxies for networks. Empty for none.
	EgressSelectorFile string

	// Admission configures the admission plugins.
	Admission Admission

	// RuntimeConfig selects the built-in kinds to serve.
	RuntimeConfig builtin.RuntimeConfig
	// AllowPrivileged allows privileged containers.
	AllowPrivileged bool

	// Controllers selects the controllers to run, in the syntax of --controllers of
	// kube-controller-manager: "*" is all, "foo" enables one, "-foo" disables it. Nil is all.
	Controllers []string

	// Services configures addresses and ports of Services.
	Services Services

	// Gates are the feature gates of Kubernetes.
	Gates *gate.Set

	// Peers configures requests between the servers of a store.
	Peers Peers

	// Etcd configures a store in etcd, if it has servers. It replaces a store in Dir or in memory.
	Etcd Etcd
	// Backend replaces all other stores. Other servers may write to it. The App closes it.
	Backend kv.Backend

	// Open is a data directory of a stopped server, or a snapshot of etcd. Its objects are served
	// read-only, from the mapped file. Empty for none.
	Open   string
	opened *opened
	// Restore is a file as for Open, whose objects are written to a new store in Dir. Empty for none.
	Restore string
	// copied makes the App a Fork; nil for others.
	copied *copied
	// From is the initial content of a store in memory; nil for none.
	From *Snapshot
	// History keeps the states of the store in Dir.
	History Remembering
	// Compiled shares compiled schemas with other Apps of this process; nil shares none.
	Compiled *compile.Shared
	// FaultInjection serves /faults, where authorized users make requests fail. It is for tests.
	FaultInjection bool
	// Console serves pages with which a browser is a client, for users with bearer tokens.
	Console bool
	// Hooks are for tests of programs that use an App.
	Hooks Hooks

	// Undone is the newest revision before a restore of the store, see kv.RestoredError. An App that
	// fails with that error must be restarted with it.
	Undone int64

	// MaxObjectBytes limits the size of a stored object; 0 is kv.DefaultMaxValueBytes. It does not
	// apply to a Backend.
	MaxObjectBytes int

	// Kubeconfig is the file for the administrator's kubeconfig; empty writes none.
	Kubeconfig string

	// Version is the gitVersion for clients; empty is the version of the program.
	Version string
	// MinWatch is the minimum timeout of a watch without timeoutSeconds; the maximum is twice that.
	// 0 is half an hour.
	MinWatch time.Duration
	// EventTTL is the time for which an Event is kept after its last write. 0 is an hour; a negative one keeps Events.
	EventTTL time.Duration
	// LeaderElection elects the server that elects the leaders of other components; the zero Term is that of kube-apiserver.
	LeaderElection controller.Term
	// StrictTransport are the directives of the header Strict-Transport-Security; none sends no
	// header.
	StrictTransport []string
	// Timeout limits the time of a request that is not a watch; 0 is server.DefaultTimeout.
	Timeout time.Duration
	// Protocol restricts TLS and HTTP.
	Protocol server.Protocol
	// GoawayChance is the probability that an HTTP/2 request closes its connection with GOAWAY.
	GoawayChance float64
	// Metrics selects the exposed metrics.
	Metrics server.MetricOptions
	// Encryption configures encryption at rest.
	Encryption Encryption
	// Audit configures the audit log.
	Audit audit.Options
	// Limits limits concurrent requests. Their sum is distributed by FlowSchemas and
	// PriorityLevelConfigurations, unless Unclassified is set.
	Limits       server.Limits
	Unclassified bool
	// Flags are the flags of the process, for its /debug/ page.
	Flags []string

	// FlagValues are the values of all flags, by name.
	FlagValues map[string]string
	// SetVerbosity sets the log level, as the flag -v. Nil sets nothing.
	SetVerbosity func(int)

	// Log receives the log; nil logs nothing.
	Log *slog.Logger
	// Fatal is called when the store can no longer be trusted, and should end the process. Nil makes
	// the App fail.
	Fatal func(error)
}

// An App is a running server.
type App struct {
	log        *slog.Logger
	options    Options
	given      files
	wired      *wired
	dial       func(selector.Name) egress.Dial // of a fork; nil for the configured one
	listener   net.Listener
	identity   *identity
	tokens     authn.Tokens // authenticators of bearer tokens
	accounts   *serviceAccounts
	issuers    *oidc.Metrics            // of external token issuers; nil without issuers
	caches     *authn.TokenCacheMetrics // of delegated token authentication; nil without it
	issued     *certificates.Metrics    // certificates of CertificateSigningRequests
	streams    *remotecommand.Metrics   // WebSockets to containers
	audit      *audit.Log               // nil for none
	traces     *otlp.Provider           // nil for none
	encryption *encrypt.Metrics         // nil without encryption
	rekeyed    *configfile.Metrics      // the encryption configuration; nil without one
	backend    kv.Backend
	parts      *parts
	server     *server.Server
	cache      *watchcache.Cache
	catalog    *resource.Catalog
	engines    engines
	undo       []func(context.Context) error // steps of the start, in order

	authorizer authz.Current
	byRoles    rbac.Authorizer
	byNodes    node.Authorizer
	chain      *chain.Chain
	egress     *selector.Selector // connections by network
	// independent are built-in kinds that forks share.
	independent []*resource.Definition
	inForks     counters
	forks       *server.Forks              // nil for a fork
	outside     []authn.TokenAuthenticator // of tokens of others
}

// Start returns once the server is ready. It validates all options before it changes anything, so an
// error leaves no changes. ctx bounds the start, not the life of the App.
func Start(ctx context.Context, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &App{log: o.Log}
	o, err := a.open(o)
	if err == nil {
		err = a.start(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, a.unwind(ctx))
	}
	return a, nil
}

func (a *App) start(ctx context.Context, o Options) error {
	o.Authentication.FrontProxy.addUID(o.Gates)
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
	if a.audit, err = given.audit.Open(a.dialer(selector.ControlPlane).DialContext); err != nil {
		return err
	}
	a.later(func(context.Context) error { a.audit.Close(); return nil })

	if err := a.openTraces(ctx, given.traces); err != nil {
		return err
	}

	a.parts = newParts(o.Log)
	if err := o.restore(ctx, given.encryption.config); err != nil {
		return err
	}
	keys, err := a.openStore(ctx, o, given)
	if err != nil {
		return err
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
	a.options, a.given, a.wired = o, given, w
	if keys != nil {
		w.encrypt(a, o, given.encryption, keys)
	}
	if a.outside, err = a.otherIssuers(o, given); err != nil {
		return err
	}
	a.useTokens(o, w)
	if given.delegated != nil {
		given.delegated.follow(a)
	}
	if err := w.applyDefinitions(ctx, a, o); err != nil {
		return err
	}
	a.cache, a.catalog = w.cache, w.catalog
	a.forks = server.NewForks(a.copy, o.Log)
	a.inForks.plugged, a.inForks.queues = o.copied.counters()
	a.server = server.New(w.serverOptions(a, o))
	if o.Kubeconfig != "" {
		if err := a.identity.kubeconfig.Write(o.Kubeconfig); err != nil {
			return err
		}
	}
	a.later(a.server.Drain)
	a.later(a.forks.Stop)
	a.parts.run("listener", func(ctx context.Context) error {
		err := a.server.Serve(a.listener)
		if err == nil {
			<-ctx.Done() // The drain has ended; the process is about to stop.
		}
		return err
	})
	// Controllers start last, because no other part waits for them. They stop first, so that they
	// can hand their work to another server.
	return w.control(a, o)
}

// openStore opens the store, and returns the keys of its encryption; nil without encryption.
func (a *App) openStore(ctx context.Context, o Options, given files) (keys *encrypt.Keyring, err error) {
	if a.backend, keys, err = openBackend(ctx, o, given.encryption.config, a.egress.Dial(selector.Etcd), a.parts.fail); err != nil {
		return nil, err
	}
	a.later(func(context.Context) error { return a.backend.Close() })
	if keys != nil {
		a.later(func(context.Context) error { return keys.Close() })
	}
	if o.Hooks.Store != nil {
		a.backend = o.Hooks.Store(a.backend)
	}
	return keys, nil
}

// prepare validates all options without side effects. It returns the parsed files and the built-in
// kinds.
func (a *App) prepare(o Options) (given files, kinds []*resource.Definition, err error) {
	if a.egress, err = selector.Open(o.EgressSelectorFile); err != nil {
		return given, nil, err
	}
	if given, err = readFiles(o, a.dialer(selector.ControlPlane)); err != nil {
		return given, nil, err
	}
	if err := o.Authentication.FrontProxy.check(o.ClientCAFile, o.Gates, o.Log); err != nil {
		return given, nil, err
	}
	if err := o.Peers.check(o.Gates, o.Authentication.FrontProxy); err != nil {
		return given, nil, err
	}
	if a.accounts, err = newServiceAccounts(o); err != nil {
		return given, nil, err
	}
	a.given = given
	if _, err := (&wired{}).selectPlugins(o, nil); err != nil {
		return given, nil, err
	}
	if err := a.newChain(o, given.authorization); err != nil {
		return given, nil, err
	}
	a.later(func(context.Context) error { a.chain.Close(); return nil })
	if err := errors.Join(o.History.check(o), o.checkRestore()); err != nil {
		return given, nil, err
	}
	if err := checkControllers(o.Controllers); err != nil {
		return given, nil, err
	}
	if kinds, err = a.kinds(o); err != nil {
		return given, nil, err
	}
	if err := o.RuntimeConfig.Apply(kinds, o.Gates); err != nil {
		return given, nil, err
	}
	_, err = o.Services.read()
	return given, kinds, err
}

// dialer returns a dialer for a network.
func (a *App) dialer(in selector.Name) *egress.Dialer {
	if a.dial != nil {
		return &egress.Dialer{Through: a.dial(in)}
	}
	return &egress.Dialer{Through: a.egress.Dial(in)}
}

// later registers the undo function of a step of the start.
func (a *App) later(undo func(context.Context) error) { a.undo = append(a.undo, undo) }

// unwind calls the undo functions in reverse order.
func (a *App) unwind(ctx context.Context) error {
	var errs []error
	for len(a.undo) > 0 {
		last := len(a.undo) - 1
		errs = append(errs, a.undo[last](ctx))
		a.undo = a.undo[:last]
	}
	return errors.Join(errs...)
}

// Stop stops the App in order: no new requests, watches end, requests in flight complete, the parts
// stop, the store is closed. When ctx ends, the remaining requests are aborted; the other steps
// still run. It is called once.
func (a *App) Stop(ctx context.Context) error { return a.unwind(ctx) }

// Failed yields the error of the first part that fails. The caller then stops the App.
func (a *App) Failed() <-chan error { return a.parts.failed }

// Address returns the address of the listener.
func (a *App) Address() net.Addr { return a.listener.Addr() }

// URL returns the URL for clients on this machine.
func (a *App) URL() string { return "https://" + reachable(a.listener.Addr()) }

// CA returns the CA certificates of the App, as PEM.
func (a *App) CA() []byte { return a.identity.kubeconfig.CA }

// Kubeconfig returns the administrator's kubeconfig, self-contained.
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

// reachable returns an address to connect to. The listener may listen on all addresses.
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
