package flags

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// addAuthentication adds the flags of client certificates, bearer tokens and anonymous requests.
func (f *Serve) addAuthentication(flags *pflag.FlagSet) {
	flags.StringVar(&f.clientCAFile, "client-ca-file", "",
		"PEM bundle of CAs for client certificates; the common name is the user, organizations are groups")
	flags.StringVar(&f.tokenFile, "token-auth-file", "",
		"CSV file with bearer tokens: token,user,uid,\"group1,group2\"")
	flags.BoolFunc("anonymous-auth",
		"authorize requests without credentials as the user system:anonymous in the group system:unauthenticated (default: only requests for health and version)",
		func(value string) error {
			allowed, err := strconv.ParseBool(value)
			f.authentication.Anonymous = &allowed
			return err
		})
	flags.BoolVar(&f.authentication.BootstrapTokens, "enable-bootstrap-token-auth", false,
		"authenticate joining nodes by bootstrap tokens: Secrets of type bootstrap.kubernetes.io/token in kube-system")
	flags.StringVar(&f.authentication.ConfigFile, "authentication-config", "",
		"file with an AuthenticationConfiguration; replaces the --oidc- flags and --anonymous-auth; reloaded when it changes")
	webhook := &f.authentication.Webhook
	flags.StringVar(&webhook.ConfigFile, "authentication-token-webhook-config-file", "",
		"kubeconfig file of a webhook that authenticates bearer tokens by TokenReview, after all other authenticators")
	flags.StringVar(&webhook.Version, "authentication-token-webhook-version", "v1beta1",
		"API version of the TokenReviews, v1 or v1beta1")
	flags.DurationVar(&webhook.CacheTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute,
		"TTL of cached answers of the token webhook")
}
