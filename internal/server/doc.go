// Package server accepts requests: one listener, TLS, and the filters for all requests.
//
// Each filter does one thing: it gives the request an audit id, counts it, recovers from panics,
// limits its time, authenticates it, rejects it when the server is full, or authorizes it. Then
// the request reaches one of the server's own pages (health, version, metrics, debug) or the API,
// a handler that package app passes in.
//
// The package knows HTTP and parsed requests. It does not know objects, storage, or how the
// handlers are composed.
//
// # The wing
//
// api is the table of paths; rest turns requests into calls of the registry; discovery and
// openapi are the documents about the served kinds; page writes HTML; search finds objects by
// their text; console has the pages of the console; fault makes requests fail, for tests. aggregate has the API
// servers behind this one, with the controller that tests their availability; peer has the other
// servers of the store, with the controller that finds them; front sends requests to both. The wing
// imports all wings before it, but of controller only the runner.
//
// Begin with filters.go, then rest/rest.go.
package server
