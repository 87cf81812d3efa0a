package flags

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addAuthorization adds the flags of authorization. mode is the default mode.
func (f *Serve) addAuthorization(flags *pflag.FlagSet, mode string) {
	authorization := &f.authorization
	flags.StringVar(&authorization.ConfigFile, "authorization-config", "",
		"file with an AuthorizationConfiguration: who decides who may do what, in place of --authorization-mode and the --authorization-webhook- flags; it is read again when it changes")
	flags.StringSliceVar(&authorization.Modes, "authorization-mode", []string{mode},
		"how it is decided who may do what, in this order, until one decides: "+strings.Join(app.AuthorizationModes(), ", "))
	flags.StringVar(&authorization.PolicyFile, "authorization-policy-file", "",
		"file with policies, JSON, one to a line; for --authorization-mode=ABAC")
	flags.StringVar(&authorization.WebhookFile, "authorization-webhook-config-file", "",
		"kubeconfig file of a server that is asked, by SubjectAccessReviews, who may do what; for --authorization-mode=Webhook")
	flags.StringVar(&authorization.WebhookVersion, "authorization-webhook-version", "v1beta1",
		"version of these SubjectAccessReviews, v1 or v1beta1")
	flags.DurationVar(&authorization.AuthorizedTTL, "authorization-webhook-cache-authorized-ttl", 5*time.Minute,
		"how long it is remembered that something was allowed")
	flags.DurationVar(&authorization.UnauthorizedTTL, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second,
		"how long it is remembered that something was not allowed")
	for _, name := range []string{"mode", "webhook-config-file", "webhook-version", "webhook-cache-authorized-ttl", "webhook-cache-unauthorized-ttl"} {
		flag := flags.Lookup("authorization-" + name)
		flag.Value = &noted{flag.Value, &authorization.Given}
	}
}
