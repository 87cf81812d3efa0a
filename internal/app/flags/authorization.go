package flags

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addAuthorization adds the flags of authorization. mode is the default authorizer.
func (f *Serve) addAuthorization(flags *pflag.FlagSet, mode string) {
	authorization := &f.authorization
	flags.StringSliceVar(&authorization.Modes, "authorization-mode", []string{mode},
		"authorizers, in order; the first to decide wins: "+strings.Join(app.AuthorizationModes(), ", "))
	flags.StringVar(&authorization.ConfigFile, "authorization-config", "",
		"file with an AuthorizationConfiguration; replaces --authorization-mode and the --authorization-webhook- flags; reloaded when it changes")
	flags.StringVar(&authorization.PolicyFile, "authorization-policy-file", "",
		"file with ABAC policies, one JSON object per line; for --authorization-mode=ABAC")
	flags.StringVar(&authorization.WebhookFile, "authorization-webhook-config-file", "",
		"kubeconfig file of a webhook that authorizes requests by SubjectAccessReview; for --authorization-mode=Webhook")
	flags.StringVar(&authorization.WebhookVersion, "authorization-webhook-version", "v1beta1",
		"API version of the SubjectAccessReviews, v1 or v1beta1")
	flags.DurationVar(&authorization.AuthorizedTTL, "authorization-webhook-cache-authorized-ttl", 5*time.Minute,
		"TTL of cached answers of the authorization webhook that allow a request")
	flags.DurationVar(&authorization.UnauthorizedTTL, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second,
		"TTL of cached answers of the authorization webhook that do not allow a request")
	for _, name := range []string{"mode", "webhook-config-file", "webhook-version", "webhook-cache-authorized-ttl", "webhook-cache-unauthorized-ttl"} {
		flag := flags.Lookup("authorization-" + name)
		flag.Value = &noted{flag.Value, &authorization.Given}
	}
}
