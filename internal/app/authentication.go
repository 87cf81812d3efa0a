package app

import (
	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
)

// Authentication says how users are known, as the flags of kube-apiserver do.
type Authentication struct {
	// Anonymous says whether requests may come without credentials, to any path. Nil
	// allows it for health and version only.
	Anonymous *bool
	// FrontProxy says which proxies are believed whose a request is.
	FrontProxy FrontProxy
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
func (a *App) useTokens(given files) {
	var kinds []authn.TokenAuthenticator
	if given.tokens != nil {
		kinds = append(kinds, authn.ForServer(nil, given.tokens))
	}
	a.tokens.Use(kinds...)
}

// trust is what other API servers are told of how users are known.
func (i *identity) trust(o Options) clusterauthentication.Trust {
	proxy := &o.Authentication.FrontProxy
	return clusterauthentication.Trust{
		Clients: i.clients, Proxies: i.proxies, AllowedNames: proxy.AllowedNames, Headers: proxy.Headers,
		Reloaded: o.ClientCAFile != "" || proxy.CAFile != "",
	}
}
