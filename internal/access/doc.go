// Package access is the wing of authentication, authorization and audit. It has no code of its own.
//
// authn authenticates requests: a package below it for each type of credentials. authz authorizes
// them: a package below it for each authorizer, chain for several of them, and impersonation. audit
// writes the audit log.
//
// The wing imports the wings object, store, network and registry.
//
// Begin with authn/authn.go and authz/authz.go.
package access
