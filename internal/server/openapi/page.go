package openapi

import "slices"

// Documents about pages that not every server has.
const (
	IssuerConfiguration = ".well-known/openid-configuration"
	IssuerKeys          = "openid/v1/jwks"
)

// page returns the operation of the document of that name, if it is about a page.
func page(name string) (o operation, ok bool) {
	switch name {
	case "version":
		o = reading("version", "getCodeVersion", "get the version information for this server", versionModel, []string{"application/json"})
	case IssuerConfiguration:
		o = reading("WellKnown", "getServiceAccountIssuerOpenIDConfiguration",
			"get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", "", []string{"application/json"})
	case IssuerKeys:
		o = reading("openid", "getServiceAccountIssuerOpenIDKeyset",
			"get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", "", []string{"application/jwk-set+json"})
	default:
		return o, false
	}
	if o.answer.schema == "" { // Kubernetes documents a request body for those with a body in the answer.
		o.body = content{}
	}
	return o, true
}

// has reports whether a document of that name, about discovery or a page, exists.
func (o *Options) has(name string) bool {
	return name == "apis" || name == "version" || slices.Contains(o.Pages, name)
}
