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
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// Authentication says how users are known, as the flags of kube-apiserver do.
type Authentication struct {
	// Anonymous says whether requests may come without credentials, to any path. Nil leaves it
	// to the ConfigFile.
	Anonymous *bool
	// Open allows such requests where neither says anything. Without it they are for health and
	// version only.
	Open bool
	// FrontProxy says which proxies are believed whose a request is.
	FrontProxy FrontProxy
	// BootstrapTokens says whether the bootstrap tokens in Secrets count.
	BootstrapTokens bool
	// ConfigFile has an AuthenticationConfiguration: issuers of JSON web tokens, and which
	// requests may come without credentials.
	ConfigFile string
	// OIDC describes one issuer, if there is no ConfigFile.
	OIDC oidc.Flags
	// Webhook is asked about tokens that nobody else knows.
	Webhook TokenWebhook

	everything bool // everybody may do it, so nobody comes without credentials unless ConfigFile says so
}

// config returns what the file or the flags say of issuers of JSON web tokens, or nil. own are
// the issuers of the server's own tokens, which no other issuer may claim to be.
func (o *Authentication) config(own []string) (*oidc.Config, error) {
	if err := o.OIDC.Check(o.ConfigFile); err != nil {
		return nil, err
	}
	if o.ConfigFile == "" {
		return o.OIDC.Config(own)
	}
	return oidc.Load(o.ConfigFile, own, o.Anonymous != nil)
}

// SigningAlgorithms are those with which JSON web tokens may be signed.
func SigningAlgorithms() []string { return oidc.Algorithms() }

// suit turns requests without credentials off where the flags let everybody do everything, as
// kube-apiserver does. What a file says of such requests stays.
func (o *Authentication) suit(z *Authorization, log *slog.Logger) {
	if z.ConfigFile != "" || !slices.Contains(z.Modes, chain.AlwaysAllow) || o.Anonymous != nil && !*o.Anonymous {
		return
	}
	log.Warn("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You should use a different authorizer")
	o.everything = true
}

// publicPaths show whether a server is well and which version it is.
func publicPaths() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// anonymous says which requests may come without credentials.
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

// authenticator finds the users of requests, in the order of kube-apiserver.
func (i *identity) authenticator(anonymous authn.Anonymous, tokens *authn.Tokens) authn.Authenticator {
	var chain authn.Chain
	var said []func() authn.Proxies
	if i.proxies != nil {
		said = append(said, i.said)
		chain = append(chain, authn.NewFrontProxy(poolOf(i.proxies), i.said))
	}
	chain = append(chain, authn.NewClientCertificates(poolOf(i.clients)), authn.Bearer{Tokens: tokens})
	return authn.WithoutCredentials(authn.OrAnonymous(chain, anonymous), said...)
}

// useTokens says which kinds of bearer tokens there are, in the order of kube-apiserver.
// accounts know the tokens that this server has issued.
func (a *App) useTokens(o Options, given files, kinds []*resource.Definition, accounts ...authn.TokenAuthenticator) error {
	if given.delegated != nil {
		given.delegated.useTokens(a, &o)
		return nil
	}
	var tokens []authn.TokenAuthenticator
	audiences := a.accounts.issuer.Audiences()
	if given.tokens != nil {
		tokens = append(tokens, authn.ForServer(audiences, given.tokens))
	}
	tokens = append(tokens, accounts...)
	if o.Authentication.BootstrapTokens {
		tokens = append(tokens, authn.ForServer(audiences, &bootstraptoken.Tokens{Read: a.bootstrapSecret(resource.NewSet(kinds).Lookup("", "secrets")), Log: o.Log}))
	}
	others, err := a.otherIssuers(o, given)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		all := &authn.Tokens{}
		all.Use(others...)
		tokens = append(tokens, authn.NewTokenCache(all, authn.TokenCacheOptions{Success: tokenSuccess, Failure: tokenFailure, Errors: true, Metrics: a.caches, Log: o.Log}))
	}
	a.tokens.Use(tokens...)
	return nil
}

// tokenSuccess and tokenFailure are how long it is remembered that a token was found good, or
// not, by what somebody else says. One that is refused may be good in a moment, but a client
// that sends it again and again is to cost less than one with a good token.
const (
	tokenSuccess = 10 * time.Second
	tokenFailure = time.Second
)

// otherIssuers know the tokens that others issue, and that are not known here.
func (a *App) otherIssuers(o Options, given files) (tokens []authn.TokenAuthenticator, err error) {
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
	return tokens, nil
}

// jwt returns what knows users by JSON web tokens, and follows its file.
func (a *App) jwt(o Options, config *oidc.Config) (*oidc.Issuers, error) {
	metrics := oidc.NewMetrics(serverID())
	issuers, err := oidc.New(a.parts.ctx, config, oidc.Options{Transport: a.transport, Egress: a.ways(), Own: o.ServiceAccounts.IssuersOf(), Metrics: metrics, Log: o.Log})
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

// serverID tells this server apart from others in metrics, as kube-apiserver does.
func serverID() string {
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(host))
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// bootstrapSecret returns what reads the Secret of a bootstrap token.
func (a *App) bootstrapSecret(secrets *resource.Definition) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, name string) ([]byte, error) {
		record, err := a.backend.Get(ctx, secrets.Key(bootstraptoken.Namespace, name), kv.Latest)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, nil
		}
		return record.Value, err
	}
}

// trust is what other API servers are told of how users are known.
func (i *identity) trust(o Options) clusterauthentication.Trust {
	proxy := &o.Authentication.FrontProxy
	return clusterauthentication.Trust{
		Clients: i.clients, Proxies: i.proxies, AllowedNames: proxy.AllowedNames, Headers: proxy.Headers,
		Reloaded: o.ClientCAFile != "" || proxy.CAFile != "",
	}
}
