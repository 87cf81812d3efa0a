package app

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/bootstraptoken"
	"github.com/anykind/anykind/internal/access/authn/oidc"
	"github.com/anykind/anykind/internal/access/authn/tokenreview"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// Authentication configures authenticators, as the flags of kube-apiserver do.
type Authentication struct {
	// Anonymous enables or disables requests without credentials, to any path. Nil leaves it to the
	// ConfigFile.
	Anonymous *bool
	// Open is the default for anonymous requests: all paths, or without Open only health and
	// version.
	Open bool
	// FrontProxy configures authentication by front proxies.
	FrontProxy FrontProxy
	// BootstrapTokens accepts the bootstrap tokens in Secrets.
	BootstrapTokens bool
	// ConfigFile is an AuthenticationConfiguration: issuers of JSON web tokens, and anonymous
	// requests.
	ConfigFile string
	// OIDC describes one issuer, if there is no ConfigFile.
	OIDC oidc.Flags
	// Webhook authenticates tokens that no other authenticator recognizes.
	Webhook TokenWebhook

	everything bool // the authorizer is AlwaysAllow, so anonymous requests need a ConfigFile
}

// config returns the configuration of issuers from the file or the flags, or nil. own are the
// issuers of the server's own tokens, which external issuers may not use.
func (o *Authentication) config(own []string, gates *gate.Set) (*oidc.Config, error) {
	if err := o.OIDC.Check(o.ConfigFile); err != nil {
		return nil, err
	}
	if o.ConfigFile == "" {
		return o.OIDC.Config(own, gates)
	}
	return oidc.Load(o.ConfigFile, own, o.Anonymous != nil, gates)
}

// SigningAlgorithms returns the accepted signing algorithms of JSON web tokens.
func SigningAlgorithms() []string { return oidc.Algorithms() }

// suit disables anonymous requests if the flags select AlwaysAllow, as kube-apiserver does. A
// configuration file overrides this.
func (o *Authentication) suit(z *Authorization, log *slog.Logger) {
	if z.ConfigFile != "" || !slices.Contains(z.Modes, chain.AlwaysAllow) || o.Anonymous != nil && !*o.Anonymous {
		return
	}
	log.Warn("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer")
	o.everything = true
}

// publicPaths are the paths of health and version.
func publicPaths() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// anonymous returns the configuration of anonymous requests.
func (o *Authentication) anonymous(config *oidc.Config) authn.Anonymous {
	switch {
	case config != nil && config.Anonymous != nil:
		a := authn.Anonymous{Enabled: config.Anonymous.Enabled}
		for _, condition := range config.Anonymous.Conditions {
			a.Paths = append(a.Paths, condition.Path)
		}
		return a
	case o.everything:
		return authn.Anonymous{}
	case o.Anonymous != nil:
		return authn.Anonymous{Enabled: *o.Anonymous}
	case o.Open:
		return authn.Anonymous{Enabled: true}
	default:
		return authn.Anonymous{Enabled: true, Paths: publicPaths()}
	}
}

// authenticator returns the authenticator of requests, with the order of kube-apiserver.
func (i *identity) authenticator(anonymous authn.Anonymous, tokens *authn.Tokens, gates *gate.Set) authn.Authenticator {
	var chain authn.Chain
	var said []func() authn.Proxies
	if i.proxies != nil {
		said = append(said, i.said)
		chain = append(chain, authn.NewFrontProxy(poolOf(i.proxies), i.said))
	}
	i.certificates = authn.NewClientCertificates(poolOf(i.clients), gates)
	chain = append(chain, i.certificates, authn.Bearer{Tokens: tokens})
	return authn.WithoutCredentials(authn.OrAnonymous(chain, anonymous), said...)
}

// useTokens sets the authenticators of bearer tokens, in the order of kube-apiserver. With a cluster that
// authenticates, only that one counts.
func (a *App) useTokens(o Options, w *wired) {
	if a.given.delegated != nil {
		a.tokens.Use(a.outside...)
		return
	}
	var tokens []authn.TokenAuthenticator
	audiences := a.accounts.issuer.Audiences()
	if a.given.tokens != nil {
		tokens = append(tokens, authn.ForServer(audiences, a.given.tokens))
	}
	tokens = append(tokens, w.accounts)
	if o.Authentication.BootstrapTokens {
		tokens = append(tokens, authn.ForServer(audiences, &bootstraptoken.Tokens{Read: a.bootstrapSecret(w.core.Lookup("", "secrets")), Log: o.Log}))
	}
	a.tokens.Use(append(tokens, a.outside...)...)
}

// tokenSuccess and tokenFailure are the TTLs of cached answers of delegated token authentication. A
// rejected token may become valid, so its TTL is short, but repeating it must cost less than using a
// valid token.
const (
	tokenSuccess = 10 * time.Second
	tokenFailure = time.Second
)

// otherIssuers returns the authenticators of tokens of external issuers and of the webhook, or that of the
// cluster that authenticates.
func (a *App) otherIssuers(o Options, given files) (tokens []authn.TokenAuthenticator, err error) {
	if given.delegated != nil {
		return []authn.TokenAuthenticator{given.delegated.authenticator(a, &o)}, nil
	}
	if given.issuers != nil || given.webhook != nil {
		a.caches = authn.NewTokenCacheMetrics()
	}
	if given.issuers != nil {
		jwt, err := a.jwt(o, given.issuers)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, authn.ForServer(a.accounts.issuer.Audiences(), jwt))
	}
	if given.webhook != nil {
		a.later(func(context.Context) error { given.webhook.Close(); return nil })
		hook := &o.Authentication.Webhook
		asked := tokenreview.New(given.webhook, hook.Version, a.accounts.issuer.Audiences())
		tokens = append(tokens, authn.NewTokenCache(asked, authn.TokenCacheOptions{Success: hook.CacheTTL, Failure: hook.CacheTTL, Metrics: a.caches, Log: o.Log}))
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	all := &authn.Tokens{}
	all.Use(tokens...)
	return []authn.TokenAuthenticator{authn.NewTokenCache(all, authn.TokenCacheOptions{Success: tokenSuccess, Failure: tokenFailure, Errors: true, Metrics: a.caches, Log: o.Log})}, nil
}

// jwt returns the authenticator of JSON web tokens, and follows its file.
func (a *App) jwt(o Options, config *oidc.Config) (*oidc.Issuers, error) {
	metrics := oidc.NewMetrics(serverID())
	issuers, err := oidc.New(a.parts.ctx, config, oidc.Options{Transport: a.transport, Egress: a.ways(), Own: o.ServiceAccounts.IssuersOf(), Gates: o.Gates, Metrics: metrics, Log: o.Log})
	if err != nil {
		return nil, err
	}
	a.issuers = metrics
	if o.Authentication.ConfigFile != "" {
		a.parts.run("authenticationconfiguration", func(ctx context.Context) error {
			issuers.Follow(ctx)
			return nil
		})
	}
	return issuers, nil
}

// serverID identifies this server in metrics, as kube-apiserver does.
func serverID() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(host))
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// bootstrapSecret returns a function that reads the Secret of a bootstrap token.
func (a *App) bootstrapSecret(secrets *resource.Definition) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, name string) ([]byte, error) {
		record, err := a.backend.Get(ctx, secrets.Key(bootstraptoken.Namespace, name), kv.Latest)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, nil
		}
		return record.Value, err
	}
}

// trust returns the authentication settings to publish for extension API servers.
func (i *identity) trust(o Options) clusterauthentication.Trust {
	proxy := &o.Authentication.FrontProxy
	return clusterauthentication.Trust{
		Clients: i.clients, Proxies: i.proxies, AllowedNames: proxy.AllowedNames, Headers: proxy.Headers,
		Reloaded: o.ClientCAFile != "" || proxy.CAFile != "",
	}
}
