package flags

import (
	"maps"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/app"
)

// addCluster adds the flags of an extension API server, which every such server has.
func (f *Serve) addCluster(flags *pflag.FlagSet) {
	const orPod = "; InClusterConfig is the cluster of the pod in which this program runs"
	c := &f.cluster
	flags.StringVar(&c.AuthenticationFile, "authentication-kubeconfig", "",
		"kubeconfig file of a cluster that this server extends, with enough rights to create tokenreviews.authentication.k8s.io and to read the ConfigMap extension-apiserver-authentication: users, tokens and front proxies are those of the cluster (default: users are this server's)"+orPod)
	flags.BoolVar(&c.SkipLookup, "authentication-skip-lookup", false,
		"do not read in the cluster which authorities sign client certificates and which front proxies are believed")
	flags.BoolVar(&c.TolerateLookupFailure, "authentication-tolerate-lookup-failure", false,
		"start although that cannot be read; requests may be treated as anonymous until it can")
	flags.StringVar(&c.Authorization.File, "authorization-kubeconfig", "",
		"kubeconfig file of a cluster that decides who may do what, with enough rights to create subjectaccessreviews.authorization.k8s.io (default: --authorization-mode says who decides)"+orPod)
	flags.StringSliceVar(&c.Authorization.AlwaysAllowPaths, "authorization-always-allow-paths", []string{"/healthz", "/readyz", "/livez"},
		"paths that everybody may ask for where --authorization-kubeconfig decides about the rest; one that ends in * is all that begin so")
	flags.StringVar(&c.File, "cluster-kubeconfig", "",
		"kubeconfig file of a cluster that this server extends: its namespaces count here, it collects garbage, and of the built-in kinds only CustomResourceDefinitions are served, unless --controllers and --runtime-config say more (default: namespaces are this server's)"+orPod)
	flags.StringVar(&c.Service, "publish-as", "",
		"NAMESPACE/NAME[:PORT] of the Service by which the cluster of --cluster-kubeconfig reaches this server: the serving certificate that is made is for its names, and the cluster gets an APIService for each version of the custom resources (default: somebody else makes the APIServices)")
	f.given = flags.Changed
}

// clusterOptions returns the cluster that the server extends, if any. The default TTLs of its
// answers are shorter than those of a webhook.
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

// extend delegates most controllers and built-in kinds to the cluster, unless flags select them
// here.
func (f *Serve) extend(o *app.Options) {
	if !f.given("controllers") {
		o.Controllers = app.ExtensionControllers()
	}
	kinds := app.ExtensionKinds()
	maps.Copy(kinds, o.RuntimeConfig)
	o.RuntimeConfig = kinds
}

// delegated returns the options of delegated authentication, as in other extension API servers.
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
