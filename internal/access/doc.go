// Package access is the wing of authentication, authorization, audit, and priority and fairness. It has
// no code of its own.
//
// authn authenticates requests: a package below it for each type of credentials. authz authorizes
// them: a package below it for each authorizer, chain for several of them, and impersonation. audit
// writes the audit log. fairness decides when a request is served.
//
// The wing imports the wings object, store, network and registry.
//
// Begin with authn/authn.go and authz/authz.go.
package access
