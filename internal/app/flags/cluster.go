package flags

import (
	"maps"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/app"
)

// addCluster adds the flags of an API server that extends a cluster, under the names of
// extension API servers.
func (f *Serve) addCluster(flags *pflag.FlagSet) {
	const orPod = "; InClusterConfig stands for the cluster of the pod of this server"
	c := &f.cluster
	flags.StringVar(&c.AuthenticationFile, "authentication-kubeconfig", "",
		"kubeconfig file of the cluster that authenticates users, tokens and front proxies; needs rights to create tokenreviews.authentication.k8s.io and to read the ConfigMap extension-apiserver-authentication"+orPod+" (default: this server authenticates)")
	flags.BoolVar(&c.SkipLookup, "authentication-skip-lookup", false,
		"do not read the CA of client certificates and the settings of front proxies from the cluster")
	flags.BoolVar(&c.TolerateLookupFailure, "authentication-tolerate-lookup-failure", false,
		"start even if these cannot be read; requests may be anonymous until they can")
	flags.StringVar(&c.Authorization.File, "authorization-kubeconfig", "",
		"kubeconfig file of the cluster that authorizes requests; needs rights to create subjectaccessreviews.authorization.k8s.io"+orPod+" (default: --authorization-mode)")
	flags.StringSliceVar(&c.Authorization.AlwaysAllowPaths, "authorization-always-allow-paths", []string{"/healthz", "/readyz", "/livez"},
		"paths that need no authorization by --authorization-kubeconfig; a trailing * matches all paths with the prefix")
	flags.StringVar(&c.File, "cluster-kubeconfig", "",
		"kubeconfig file of the cluster that this server extends. The cluster provides namespaces and garbage collection; this server serves CustomResourceDefinitions and no other built-in kind, unless --controllers and --runtime-config enable more"+orPod+" (default: this server extends no cluster)")
	flags.StringVar(&c.Service, "publish-as", "",
		"NAMESPACE/NAME[:PORT] of the Service through which the cluster of --cluster-kubeconfig reaches this server. The generated serving certificate has its DNS names, and the server creates an APIService in the cluster for each version of the custom resources (default: no APIService is created)")
}

// clusterOptions returns the options of the cluster that the server extends, if there is one. Its
// answers have a shorter TTL than those of webhooks, unless a flag sets the TTL.
func (f *Serve) clusterOptions() app.Cluster {
	c := f.cluster
	c.TokenTTL, c.Authorization.AuthorizedTTL, c.Authorization.UnauthorizedTTL = app.DelegationTTL, app.DelegationTTL, app.DelegationTTL
	if f.given("authentication-token-webhook-cache-ttl") {
		c.TokenTTL = f.authentication.Webhook.CacheTTL
	}
	if f.given("authorization-webhook-cache-authorized-ttl") {
		c.Authorization.AuthorizedTTL = f.authorization.AuthorizedTTL
	}
	if f.given("authorization-webhook-cache-unauthorized-ttl") {
		c.Authorization.UnauthorizedTTL = f.authorization.UnauthorizedTTL
	}
	return c
}

// extend disables the controllers and built-in kinds that the cluster provides, unless flags enable
// them.
func (f *Serve) extend(o *app.Options) {
	if !f.given("controllers") {
		o.Controllers = app.ExtensionControllers()
	}
	kinds := app.ExtensionKinds()
	maps.Copy(kinds, o.RuntimeConfig)
	o.RuntimeConfig = kinds
}

// delegated returns the authentication of an API server that extends a cluster.
func delegated(a app.Authentication) app.Authentication {
	a.Open = true
	if h := &a.FrontProxy.Headers; a.FrontProxy.CAFile != "" {
		standard := authn.StandardProxyHeaders()
		for _, one := range []struct{ given, standard *[]string }{
			{&h.Username, &standard.Username}, {&h.Group, &standard.Group}, {&h.ExtraPrefix, &standard.ExtraPrefix},
		} {
			if len(*one.given) == 0 {
				*one.given = *one.standard
			}
		}
	}
	return a
}
