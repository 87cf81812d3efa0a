package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addOIDC adds the flags of an external issuer of JSON web tokens.
func (f *Serve) addOIDC(flags *pflag.FlagSet) {
	oidc := &f.authentication.OIDC
	flags.StringVar(&f.authentication.ConfigFile, "authentication-config", "",
		"file with an AuthenticationConfiguration: issuers of JSON web tokens, in place of the --oidc- flags, and which requests may come without credentials, in place of --anonymous-auth; it is read again when it changes")
	flags.StringVar(&oidc.IssuerURL, "oidc-issuer-url", "",
		"URL of an OpenID Connect issuer, https only; its JSON web tokens name users")
	flags.StringVar(&oidc.ClientID, "oidc-client-id", "",
		"audience for which tokens of --oidc-issuer-url have to be")
	flags.StringVar(&oidc.CAFile, "oidc-ca-file", "",
		"file with authorities that sign the certificate of the issuer, PEM (default: those of the machine)")
	flags.StringVar(&oidc.UsernameClaim, "oidc-username-claim", "sub",
		"claim that names the user")
	flags.StringVar(&oidc.UsernamePrefix, "oidc-username-prefix", "",
		"prefix of names of users; - for none (default: the issuer's URL and a #, unless the claim is email)")
	flags.StringVar(&oidc.GroupsClaim, "oidc-groups-claim", "",
		"claim that names the groups of the user, a string or a list of them")
	flags.StringVar(&oidc.GroupsPrefix, "oidc-groups-prefix", "",
		"prefix of names of groups")
	flags.StringSliceVar(&oidc.Algorithms, "oidc-signing-algs", []string{"RS256"},
		"algorithms with which tokens may be signed, of "+strings.Join(app.SigningAlgorithms(), ", "))
	flags.Var((*requiredClaims)(&oidc.RequiredClaims), "oidc-required-claim",
		"claim=value that a token must have; may be given several times")
	for _, name := range []string{"issuer-url", "client-id", "ca-file", "username-claim", "username-prefix", "groups-claim", "groups-prefix", "signing-algs", "required-claim"} {
		flag := flags.Lookup("oidc-" + name)
		flag.Value = &noted{flag.Value, &oidc.Given}
	}
}

// A noted flag records that it was set.
type noted struct {
	flagValue
	given *bool
}

type flagValue interface {
	String() string
	Set(string) error
	Type() string
}

// Set sets the value of the flag.
func (n *noted) Set(s string) error {
	*n.given = true
	return n.flagValue.Set(s)
}

// requiredClaims are pairs of a name and a value; each use of the flag adds one.
type requiredClaims map[string]string

// String returns the value of the flag.
func (r *requiredClaims) String() string {
	var pairs []string
	for name, value := range *r {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// Type returns the type for help.
func (r *requiredClaims) Type() string { return "claim=value" }

// Set adds a pair.
func (r *requiredClaims) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("malformed pair, expect string=string")
	}
	if *r == nil {
		*r = requiredClaims{}
	}
	(*r)[strings.TrimSpace(name)] = strings.TrimSpace(value)
	return nil
}
