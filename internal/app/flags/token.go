package flags

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/controller/legacytoken"
)

// tokenFlags are the flags of service account tokens.
type tokenFlags struct {
	serviceaccount.Options
	extend, lookup bool
	cleanUpPeriod  time.Duration
}

// addTokens adds the flags of service account tokens.
func (f *Serve) addTokens(flags *pflag.FlagSet) {
	o := &f.tokens
	flags.StringArrayVar(&o.KeyFiles, "service-account-key-file", nil,
		"PEM file with RSA or ECDSA keys, public or private, that verify service account tokens; repeatable; needs --service-account-signing-key-file (default: a generated key, stored with the data)")
	flags.StringVar(&o.SigningKeyFile, "service-account-signing-key-file", "",
		"PEM file with the private key that signs service account tokens; needs --service-account-key-file")
	flags.StringVar(&o.SigningEndpoint, "service-account-signing-endpoint", "",
		"Unix socket of an external signer of service account tokens, by the protocol of k8s.io/externaljwt; excludes --service-account-key-file and --service-account-signing-key-file")
	flags.StringArrayVar(&o.Issuers, "service-account-issuer", []string{serviceaccount.DefaultIssuer},
		"issuer of service account tokens; repeatable: the first one issues tokens, tokens of all are accepted. An https URL enables OIDC discovery at /.well-known/openid-configuration and /openid/v1/jwks")
	flags.StringSliceVar(&o.Audiences, "api-audiences", nil,
		"audiences of this API; a token must be for one of them (default: --service-account-issuer)")
	flags.StringVar(&o.JWKSURI, "service-account-jwks-uri", "",
		"https URL of the JSON web key set in the OIDC discovery document (default: /openid/v1/jwks of this server)")
	flags.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", 0,
		"maximum lifetime of a service account token; a request for a longer one gets this lifetime (default: no limit)")
	flags.BoolVar(&o.extend, "service-account-extend-token-expiration", true,
		"extend tokens that are injected into pods from 3607 seconds to one year; audit annotations and metrics report uses after the requested lifetime")
	flags.BoolVar(&o.lookup, "service-account-lookup", true,
		"accept the token in a Secret only while the Secret and its service account exist")
	flags.DurationVar(&f.tokens.cleanUpPeriod, "legacy-service-account-token-clean-up-period", legacytoken.DefaultPeriod,
		"time without use after which the token in an auto-generated Secret becomes invalid; after the same time again the Secret is deleted")
}

// options returns the options that the flags set.
func (f *tokenFlags) options() serviceaccount.Options {
	o := f.Options
	o.ExactExpiration, o.SkipLookup = !f.extend, !f.lookup
	return o
}
