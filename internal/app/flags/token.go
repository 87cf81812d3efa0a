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
		"file with RSA or ECDSA keys, public or private, PEM, that verify the tokens of service accounts; may be given several times; needs --service-account-signing-key-file (default: a key is made, and kept with the data)")
	flags.StringVar(&o.SigningKeyFile, "service-account-signing-key-file", "",
		"file with the private key that signs the tokens of service accounts, PEM; needs --service-account-key-file")
	flags.StringVar(&o.SigningEndpoint, "service-account-signing-endpoint", "",
		"Unix socket of a program that signs the tokens of service accounts by the protocol of k8s.io/externaljwt; excludes --service-account-key-file and --service-account-signing-key-file")
	flags.StringArrayVar(&o.Issuers, "service-account-issuer", []string{serviceaccount.DefaultIssuer},
		"who says to have issued the tokens of service accounts; may be given several times: the first one signs, and tokens of all count. If it is an https URL, /.well-known/openid-configuration and /openid/v1/jwks tell others how to verify the tokens")
	flags.StringSliceVar(&o.Audiences, "api-audiences", nil,
		"names of this API: tokens must be for one of them (default: --service-account-issuer)")
	flags.StringVar(&o.JWKSURI, "service-account-jwks-uri", "",
		"https URL at which others find the keys that verify tokens, if it is not this server's /openid/v1/jwks")
	flags.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", 0,
		"how long a token of a service account may be valid; one that is asked for for longer is valid so long (default: any time)")
	flags.BoolVar(&o.extend, "service-account-extend-token-expiration", true,
		"give tokens that are injected into pods, for 3607 seconds, a year instead, and note in audit and metrics who uses one after the time that was asked for")
	flags.BoolVar(&o.lookup, "service-account-lookup", true,
		"let the token in a Secret count only while that Secret and its account exist")
	flags.DurationVar(&f.tokens.cleanUpPeriod, "legacy-service-account-token-clean-up-period", legacytoken.DefaultPeriod,
		"after how long without a use the token of a Secret that was made with its account is marked as invalid, and after how long again the Secret is deleted")
}

// options converts the flags to options.
func (f *tokenFlags) options() serviceaccount.Options {
	o := f.Options
	o.ExactExpiration, o.SkipLookup = !f.extend, !f.lookup
	return o
}
