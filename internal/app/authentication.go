package app

import "github.com/anykind/anykind/internal/authn"

// Authentication says how users are known, as the flags of the same names of kube-apiserver do.
type Authentication struct {
	// Anonymous says whether requests may come without credentials, to any path. Nil
	// allows it for health and version only.
	Anonymous *bool
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
