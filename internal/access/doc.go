// Package access is the wing of users and rights. It has no code of its own.
//
// authn finds the user of a request: a package below it for each kind of credentials. authz
// decides whether the user may send the request: a package below it for each authorizer, chain
// for several of them, and impersonation.
//
// The wing imports the wings object, store, network and registry.
//
// Begin with authn/authn.go and authz/authz.go.
package access
