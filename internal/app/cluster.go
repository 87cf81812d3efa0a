package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/delegation"
	"github.com/anykind/anykind/internal/access/authn/tokenreview"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/definition"
	"github.com/anykind/anykind/internal/controller/migration"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/controller/publish"
	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/mirror"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/review"
	"github.com/anykind/anykind/internal/object/resource"
)

// DelegationTTL is how long it is remembered what the cluster has said of a token or a right, unless
// somebody says otherwise.
const DelegationTTL = 10 * time.Second

// A Cluster is one that this server extends, with what is left to it. Each file is a kubeconfig, or
// kubeconfig.InCluster.
type Cluster struct {
	// File is where namespaces are; "" for namespaces of this server. Then the controllers of the
	// cluster collect garbage, too.
	File string
	// Service is the one by which the cluster of File reaches this server, as publish.ParseService reads
	// it. "" publishes nothing there.
	Service string
	// AuthenticationFile is where users are known; "" for users of this server.
	AuthenticationFile string
	// SkipLookup does not read in the cluster which certificates count.
	SkipLookup bool
	// TolerateLookupFailure starts also if that cannot be read.
	TolerateLookupFailure bool
	// TokenTTL is how long answers about tokens are remembered.
	TokenTTL time.Duration
	// Authorization says where it is decided who may do what; without a File, here.
	Authorization chain.Delegation
}

// tokenReviews is where the cluster is asked about tokens.
const tokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"

// A delegated is how users are known where the cluster knows them.
type delegated struct {
	tokens *review.Client
	trust  *delegation.Trust // nil where nothing is read
}

// open opens the connections to the cluster, and reads what it says of certificates. It returns nil if
// users are known here.
func (c *Cluster) open(ctx context.Context, log *slog.Logger) (*delegated, error) {
	if c.AuthenticationFile == "" {
		return nil, nil
	}
	var direct egress.Dialer
	var d delegated
	var err error
	if d.tokens, err = review.Open(c.AuthenticationFile, tokenReviews, direct.DialContext, DelegationTTL); err != nil || c.SkipLookup {
		return &d, err
	}
	client, err := cluster.Open(c.AuthenticationFile, direct.DialContext)
	if err != nil {
		return nil, err
	}
	d.trust = delegation.New(client, log)
	err = d.trust.Load(ctx)
	if err != nil && c.TolerateLookupFailure {
		log.Warn("the authentication settings of the cluster cannot be read; requests may be anonymous until they can. To require them, set --authentication-tolerate-lookup-failure=false", "error", err)
		err = nil
	}
	return &d, err
}

// errTwoDeciders says that there are two who decide who may do what.
var errTwoDeciders = errors.New("--authorization-kubeconfig can not be specified when --authorization-config or --authorization-mode are defined")

// authorizationConfig returns who decides who may do what.
func (o *Options) authorizationConfig() (*chain.Config, error) {
	switch d := &o.Cluster.Authorization; {
	case d.File == "":
		return o.Authorization.config()
	case o.Authorization.ConfigFile != "" || len(o.Authorization.Modes) > 0:
		return nil, errTwoDeciders
	default:
		return d.Config()
	}
}

// useTokens says that bearer tokens are those that the cluster knows.
func (d *delegated) useTokens(a *App, o *Options) {
	a.later(func(context.Context) error { d.tokens.Close(); return nil })
	a.caches = authn.NewTokenCacheMetrics()
	ttl := o.Cluster.TokenTTL
	a.tokens.Use(authn.NewTokenCache(tokenreview.New(d.tokens, "v1", nil), authn.TokenCacheOptions{Success: ttl, Failure: ttl, Metrics: a.caches, Log: o.Log}))
}

// follow reads again what the cluster says of certificates whenever it changes.
func (d *delegated) follow(a *App) {
	if d.trust != nil {
		a.parts.run("clusterauthentication", func(ctx context.Context) error {
			d.trust.Follow(ctx)
			return nil
		})
	}
}

// delegate has the cluster say which certificates count, where no file does.
func (i *identity) delegate(o Options, d *delegated) {
	if d == nil || d.trust == nil {
		return
	}
	if o.ClientCAFile == "" {
		i.clients = joined(i.clients, d.trust.Clients)
	}
	if i.proxies == nil {
		i.proxies, i.said = d.trust.Proxies, d.trust.Said
	}
}

// mirrorNamespaces keeps copies of the namespaces of the cluster, if they are there.
func (w *wired) mirrorNamespaces(a *App, c *Cluster, namespaces *resource.Definition) error {
	if c.File == "" {
		return nil
	}
	var direct egress.Dialer
	client, err := cluster.Open(c.File, direct.DialContext)
	if err != nil {
		return err
	}
	a.later(func(context.Context) error { client.Close(); return nil })
	w.extended = client
	w.mirror = &mirror.Namespaces{Cluster: client, Backend: a.backend, Kind: namespaces, Log: w.log}
	w.following = append(w.following, w.mirror.Follow)
	return nil
}

// byName finds a Service of the cluster by its name, as pods do.
func byName(_ context.Context, s egress.Service) ([]string, error) {
	return []string{net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(s.Port)))}, nil
}

// ensureCluster makes what every cluster has, unless this server extends one that has it.
func (w *wired) ensureCluster(ctx context.Context, core *resource.Set) error {
	if w.mirror != nil {
		return nil
	}
	return errors.Join(w.ensureNamespaces(ctx, core.Lookup("", "namespaces")), w.ensureServices(ctx, core))
}

// ExtensionControllers are those that run where the cluster has the others. The one of namespaces is
// among them: it empties what is being deleted in the cluster, and the cluster waits for that.
func ExtensionControllers() []string {
	return []string{definition.Name, namespace.Name, migration.Name}
}

// ExtensionKinds are the built-in kinds that are served where the cluster has the others.
func ExtensionKinds() builtin.RuntimeConfig {
	return builtin.RuntimeConfig{"api/all": "false", apiextensionsv1.SchemeGroupVersion.String(): "true"}
}

var errNowhere = errors.New("--publish-as needs --cluster-kubeconfig, the cluster for its APIServices")

// service is the one by which the cluster reaches this server, or nil.
func (c *Cluster) service() (*publish.Service, error) {
	if c.Service == "" {
		return nil, nil
	}
	if c.File == "" {
		return nil, errNowhere
	}
	s, err := publish.ParseService(c.Service)
	if err != nil {
		return nil, fmt.Errorf("--publish-as: %w", err)
	}
	return &s, nil
}

// hosts are those by which this server is found, with those of its Service.
func (c *Cluster) hosts(others []string) ([]string, error) {
	s, err := c.service()
	if err != nil || s == nil {
		return others, err
	}
	return append(others, s.Hosts()...), nil
}

// publishes is the controller that publishes custom resources in the cluster, if it is to.
func (w *wired) publishes(a *App, c *Cluster) ([]controller.Descriptor, error) {
	s, err := c.service()
	if err != nil || s == nil {
		return nil, err
	}
	return []controller.Descriptor{{Name: publish.Name, New: publish.New(publish.Options{Cluster: w.extended, Service: *s, CA: a.CA()})}}, nil
}

// joined returns the authorities of two together. They are the same pointer for as long as both are.
func joined(one, other func() *pki.Authorities) func() *pki.Authorities {
	var last struct {
		sync.Mutex
		one, other, both *pki.Authorities
	}
	return func() *pki.Authorities {
		one, other := one(), other()
		last.Lock()
		defer last.Unlock()
		if last.both == nil || last.one != one || last.other != other {
			last.one, last.other = one, other
			last.both = pki.NewAuthorities(append(append(one.Certificates[:0:0], one.Certificates...), other.Certificates...)...)
		}
		return last.both
	}
}
