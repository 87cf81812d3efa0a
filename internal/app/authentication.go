package app

import (
	"context"
	"errors"

	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/authn/bootstraptoken"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/resource"
)

// Authentication says how users are known, as the flags of kube-apiserver do.
type Authentication struct {
	// Anonymous says whether requests may come without credentials, to any path. Nil
	// allows it for health and version only.
	Anonymous *bool
	// FrontProxy says which proxies are believed whose a request is.
	FrontProxy FrontProxy
	// BootstrapTokens says whether the bootstrap tokens in Secrets count.
	BootstrapTokens bool
}

// publicPaths show whether a server is well and which version it is.
func publicPaths() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// anonymous says which requests may come without credentials.
func (o *Authentication) anonymous() authn.Anonymous {
	if o.Anonymous == nil {
		return authn.Anonymous{Enabled: true, Paths: publicPaths()}
	}
	return authn.Anonymous{Enabled: *o.Anonymous}
}

// authenticator finds the users of requests, in the order of kube-apiserver.
func (i *identity) authenticator(o Authentication, tokens *authn.Tokens) authn.Authenticator {
	var chain authn.Chain
	var headers []authn.ProxyHeaders
	if i.proxies != nil {
		headers = append(headers, o.FrontProxy.Headers)
		chain = append(chain, authn.NewFrontProxy(poolOf(i.proxies), o.FrontProxy.AllowedNames, o.FrontProxy.Headers))
	}
	chain = append(chain, authn.NewClientCertificates(poolOf(i.clients)), authn.Bearer{Tokens: tokens})
	return authn.WithoutCredentials(authn.OrAnonymous(chain, o.anonymous()), headers...)
}

// useTokens says which kinds of bearer tokens there are, in the order of kube-apiserver.
func (a *App) useTokens(o Options, given files, kinds []*resource.Definition, w *wired) {
	audiences := a.accounts.issuer.Audiences()
	var tokens []authn.TokenAuthenticator
	if given.tokens != nil {
		tokens = append(tokens, authn.ForServer(audiences, given.tokens))
	}
	tokens = append(tokens, w.accounts)
	if o.Authentication.BootstrapTokens {
		tokens = append(tokens, authn.ForServer(audiences, &bootstraptoken.Tokens{Read: a.bootstrapSecret(resource.NewSet(kinds).Lookup("", "secrets")), Log: o.Log}))
	}
	a.tokens.Use(tokens...)
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
