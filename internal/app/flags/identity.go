package flags

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// addIdentity adds the flags of serving certificates and authentication.
func (f *Serve) addIdentity(flags *pflag.FlagSet) {
	flags.StringVar(&f.certFile, "tls-cert-file", "",
		"file with the serving certificate and its intermediates, PEM; needs --tls-private-key-file (default: one is made)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "",
		"file with the private key of --tls-cert-file, PEM")
	flags.Var(&f.named, "tls-sni-cert-key",
		"files with a certificate and its key, PEM, for clients that ask for the server by certain names: CERT,KEY or CERT,KEY:NAME,NAME; *.NAME is all names below; may be given several times")
	flags.StringVar(&f.clientCAFile, "client-ca-file", "",
		"file with authorities, PEM; a client certificate by one of them names a user (common name) and groups (organizations)")
	flags.StringVar(&f.tokenFile, "token-auth-file", "",
		"file with bearer tokens, CSV: token,user,uid,\"group1,group2\"")
	flags.BoolFunc("anonymous-auth",
		"let requests without credentials through to authorization, as the user system:anonymous in the group system:unauthenticated (default: only those for health and version)",
		func(value string) error {
			allowed, err := strconv.ParseBool(value)
			f.authentication.Anonymous = &allowed
			return err
		})
	flags.BoolVar(&f.authentication.BootstrapTokens, "enable-bootstrap-token-auth", false,
		"let nodes join by bootstrap tokens: those of Secrets of type bootstrap.kubernetes.io/token in kube-system")
	webhook := &f.authentication.Webhook
	flags.StringVar(&webhook.ConfigFile, "authentication-token-webhook-config-file", "",
		"kubeconfig file of a server that is asked, by TokenReviews, about bearer tokens that nothing else knows")
	flags.StringVar(&webhook.Version, "authentication-token-webhook-version", "v1beta1",
		"version of these TokenReviews, v1 or v1beta1")
	flags.DurationVar(&webhook.CacheTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute,
		"how long its answers are remembered")
	f.addOIDC(flags)
	f.addFrontProxy(flags)
	f.addKubelet(flags)
	f.network.add(flags)
	f.limits.add(flags)
	f.metrics.add(flags)
}
