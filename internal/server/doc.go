// Package server accepts requests: one listener, TLS, and the filters for all requests.
//
// Each filter of the chain does one thing: it gives the request an audit id, counts it,
// recovers from panics, limits its time, authenticates it, refuses it when the server is
// full, or authorizes it. Then the request reaches one of the server's own pages (health,
// version, metrics, debug) or the API, which is a handler that package app passes in.
//
// The package knows HTTP and the names of requests. It does not know objects, storage, or
// how the handlers were put together.
//
// # The wing
//
// api is the table of paths; rest turns requests into calls of the registry; discovery and openapi
// are the documents about the kinds that are served; page writes HTML. aggregate has the API
// servers behind this one, with the controller that tests their availability. The wing imports
// all wings before it but controllers other than the runner.
//
// Begin with filters.go, then rest/rest.go.
package server
