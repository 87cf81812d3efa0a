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

// DelegationTTL is the default TTL of cached answers of the cluster about tokens and authorization.
const DelegationTTL = 10 * time.Second

// A Cluster is a cluster that this server extends, with the tasks that are delegated to it. Each
// file is a kubeconfig, or kubeconfig.InCluster.
type Cluster struct {
	// File is the cluster with the namespaces; "" for namespaces of this server. The cluster's
	// controllers collect garbage as well.
	File string
	// Service is the Service through which the cluster of File reaches this server, in the format of
	// publish.ParseService. "" publishes nothing there.
	Service string
	// AuthenticationFile is the cluster for authentication; "" authenticates here.
	AuthenticationFile string
	// SkipLookup does not read the CAs for certificates from the cluster.
	SkipLookup bool
	// TolerateLookupFailure starts even if they cannot be read.
	TolerateLookupFailure bool
	// TokenTTL is the TTL of cached answers about tokens.
	TokenTTL time.Duration
	// Authorization is the cluster for authorization; without a File, this server authorizes.
	Authorization chain.Delegation
}

// tokenReviews is the path of TokenReviews in the cluster.
const tokenReviews = "/apis/authentication.k8s.io/v1/tokenreviews"

// delegated is authentication by the cluster.
type delegated struct {
	tokens *review.Client
	trust  *delegation.Trust // nil with SkipLookup
}

// open connects to the cluster and reads the CAs for certificates. It returns nil if this server
// authenticates.
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

// errTwoDeciders reports a conflict of delegated authorization with local authorizers.
var errTwoDeciders = errors.New("--authorization-kubeconfig can not be specified when --authorization-config or --authorization-mode are defined")

// authorizationConfig returns the configuration of the authorizers.
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

// authenticator returns the authenticator of bearer tokens by the cluster.
func (d *delegated) authenticator(a *App, o *Options) authn.TokenAuthenticator {
	a.later(func(context.Context) error { d.tokens.Close(); return nil })
	a.caches = authn.NewTokenCacheMetrics()
	ttl := o.Cluster.TokenTTL
	return authn.NewTokenCache(tokenreview.New(d.tokens, "v1", nil), authn.TokenCacheOptions{Success: ttl, Failure: ttl, Metrics: a.caches, Log: o.Log})
}

// follow rereads the CAs of the cluster after each change.
func (d *delegated) follow(a *App) {
	if d.trust != nil {
		a.parts.run("clusterauthentication", func(ctx context.Context) error {
			d.trust.Follow(ctx)
			return nil
		})
	}
}

// delegate takes the CAs from the cluster if no file has them.
func (i *identity) delegate(o Options, d *delegated) {
	if d == nil || d.trust == nil {
		return
	}
	if o.ClientCAFile == "" {
		i.clients = joined(i.clients, d.trust.Clients)
	}
	if i.proxies == nil {
		i.proxies, i.said = d.trust.Proxies, d.trust.FrontProxies
	}
}

// mirrorNamespaces keeps copies of the cluster's namespaces, if the cluster has them.
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

// byName resolves a Service of the cluster by its DNS name, as pods do.
func byName(_ context.Context, s egress.Service) ([]string, error) {
	return []string{net.JoinHostPort(s.Name+"."+s.Namespace+".svc", strconv.Itoa(int(s.Port)))}, nil
}

// ensureCluster creates the default objects of a cluster, unless this server extends one.
func (w *wired) ensureCluster(ctx context.Context, core *resource.Set) error {
	if w.mirror != nil {
		return nil
	}
	return errors.Join(w.ensureNamespaces(ctx, core.Lookup("", "namespaces")), w.ensureServices(ctx, core))
}

// ExtensionControllers are the controllers that run in a server that extends a cluster. The
// namespace controller is one of them: it deletes the objects in a terminating namespace of the
// cluster, and the cluster waits for that.
func ExtensionControllers() []string {
	return []string{definition.Name, namespace.Name, migration.Name}
}

// ExtensionKinds are the built-in kinds of a server that extends a cluster.
func ExtensionKinds() builtin.RuntimeConfig {
	return builtin.RuntimeConfig{"api/all": "false", apiextensionsv1.SchemeGroupVersion.String(): "true"}
}

var errNowhere = errors.New("--publish-as needs --cluster-kubeconfig, the cluster for its APIServices")

// service returns the Service of this server in the cluster, or nil.
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

// hosts returns the names and addresses of this server, including those of its Service.
func (c *Cluster) hosts(others []string) ([]string, error) {
	s, err := c.service()
	if err != nil || s == nil {
		return others, err
	}
	return append(others, s.Hosts()...), nil
}

// publishes returns the controller that publishes custom resources in the cluster, if configured.
func (w *wired) publishes(a *App, c *Cluster) ([]controller.Descriptor, error) {
	s, err := c.service()
	if err != nil || s == nil {
		return nil, err
	}
	return []controller.Descriptor{{Name: publish.Name, New: publish.New(publish.Options{Cluster: w.extended, Service: *s, CA: a.CA()})}}, nil
}

// joined returns the union of two sets of CAs. The pointer changes only when one of the two does.
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
