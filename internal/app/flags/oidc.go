package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/internal/app"
)

// addOIDC adds the flags of an OpenID Connect issuer.
func (f *Serve) addOIDC(flags *pflag.FlagSet) {
	oidc := &f.authentication.OIDC
	flags.StringVar(&oidc.IssuerURL, "oidc-issuer-url", "",
		"https URL of an OpenID Connect issuer; its JSON web tokens (JWTs) authenticate users")
	flags.StringVar(&oidc.ClientID, "oidc-client-id", "",
		"required audience of the JWTs")
	flags.StringVar(&oidc.CAFile, "oidc-ca-file", "",
		"PEM bundle of CAs for the certificate of the issuer (default: the CAs of the host)")
	flags.StringVar(&oidc.UsernameClaim, "oidc-username-claim", "sub",
		"claim with the name of the user")
	flags.StringVar(&oidc.UsernamePrefix, "oidc-username-prefix", "",
		"prefix of user names; - for none (default: the issuer URL and #, unless the claim is email)")
	flags.StringVar(&oidc.GroupsClaim, "oidc-groups-claim", "",
		"claim with the groups of the user, a string or a list of strings")
	flags.StringVar(&oidc.GroupsPrefix, "oidc-groups-prefix", "",
		"prefix of group names")
	flags.StringSliceVar(&oidc.Algorithms, "oidc-signing-algs", []string{"RS256"},
		"accepted signature algorithms, of "+strings.Join(app.SigningAlgorithms(), ", "))
	flags.Var((*requiredClaims)(&oidc.RequiredClaims), "oidc-required-claim",
		"claim=value that a JWT must have; repeatable")
	for _, name := range []string{"issuer-url", "client-id", "ca-file", "username-claim", "username-prefix", "groups-claim", "groups-prefix", "signing-algs", "required-claim"} {
		flag := flags.Lookup("oidc-" + name)
		flag.Value = &noted{flag.Value, &oidc.Given}
	}
}

// A noted value records that its flag was set.
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

// requiredClaims are pairs of names and values, one for each use of the flag.
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

// Type is the name of the value in help.
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
